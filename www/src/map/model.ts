// What the layout map draws, in the order of the axis: per index one lane of positions into its segments.

import type { FragmentColumns, IndexInfo, SegmentInfo } from "../engine/documents.js";
import { positionOf } from "./axis.js";
import { UNCOVERED, UNKNOWN } from "./cover.js";
import { assignColours } from "./palette.js";
import { makeRuns } from "./strip.js";
import type { Runs } from "./strip.js";

export { UNCOVERED, UNKNOWN };

export interface LaneSegment {
  uuid: string;
  info: SegmentInfo;
  /** Slot of the segment palette. */
  colour: number;
  /** Live fragments covered, and their first and last position on the axis (-1: none). */
  fragments: number;
  rows: number;
  first: number;
  last: number;
  /** Coverage is not recorded. */
  unknown: boolean;
  /** Coverage was translated through a reuse history. */
  derived: boolean;
}

export interface Lane {
  index: IndexInfo;
  segments: LaneSegment[];
  /** Per fragment the position in `segments` of the one covering it; UNCOVERED; or UNKNOWN. */
  cover: Int32Array;
  /** The same as stretches. */
  runs: Runs;
  /** Retired ids that a segment of this index still names, by position of the segment. */
  retired: Map<number, number>;
  uncovered: number;
}


export interface Layout {
  columns: FragmentColumns;
  lanes: Lane[];
  /** All retired ids of all lanes, ascending. */
  retired: number[];
  /** Largest physical rows of one fragment. */
  maxRows: number;
  /** uuid -> where it is. */
  byUuid: Map<string, { lane: number; segment: number }>;
}

export function makeLayout(columns: FragmentColumns, indices: readonly IndexInfo[]): Layout {
  const n = columns.ids.length;
  const lanes = indices.map((index) => makeLane(columns, index));
  const retired = new Set<number>();
  const byUuid = new Map<string, { lane: number; segment: number }>();
  lanes.forEach((lane, l) => {
    for (const id of lane.retired.keys()) retired.add(id);
    lane.segments.forEach((segment, s) => byUuid.set(segment.uuid.toLowerCase(), { lane: l, segment: s }));
  });
  let maxRows = 0;
  for (let i = 0; i < n; i += 1) if (columns.physical_rows[i]! > maxRows) maxRows = columns.physical_rows[i]!;
  return { columns, lanes, retired: [...retired].sort((a, b) => a - b), maxRows, byUuid };
}

function makeLane(columns: FragmentColumns, index: IndexInfo): Lane {
  const n = columns.ids.length;
  const cover = new Int32Array(n).fill(UNCOVERED);
  const retired = new Map<number, number>();
  const segments: LaneSegment[] = index.segments.map((info) => ({
    uuid: info.uuid, info, colour: 0, fragments: 0, rows: 0, first: -1, last: -1, unknown: info.fragment_ids === null, derived: Array.isArray(info.derived_coverage),
  }));
  segments.forEach((segment, s) => {
    const effective = segment.info.derived_coverage ?? segment.info.effective_fragment_ids ?? segment.info.fragment_ids ?? [];
    for (const id of effective) {
      const i = positionOf(columns.ids, id);
      if (i < 0) {
        retired.set(id, s);
        continue;
      }
      // The first segment in manifest order wins where two claim a fragment; the numbers of both still count it.
      if (cover[i] === UNCOVERED) cover[i] = s;
      segment.fragments += 1;
      segment.rows += liveRows(columns, i);
      if (segment.first < 0 || i < segment.first) segment.first = i;
      if (i > segment.last) segment.last = i;
    }
    for (const id of segment.info.retired_fragment_ids ?? []) retired.set(id, s);
  });
  const open = !index.coverage_known || segments.some((segment) => segment.unknown);
  let uncovered = 0;
  for (let i = 0; i < n; i += 1) {
    if (cover[i] !== UNCOVERED) continue;
    if (open) cover[i] = UNKNOWN;
    else uncovered += 1;
  }
  assignColours(segments, cover);
  return { index, segments, cover, runs: makeRuns(cover), retired, uncovered };
}

/** Live rows of a fragment; unknown counts as none in sums, which is why sums over such tables say "at least". */
export function liveRows(columns: FragmentColumns, i: number): number {
  const physical = columns.physical_rows[i]!;
  const deleted = columns.deleted_rows[i]!;
  return Number.isNaN(physical) ? 0 : physical - (Number.isNaN(deleted) ? 0 : deleted);
}

/** Per lane what covers fragment position i, in words: the set that decides grouping. */
export function coveringSet(layout: Layout, i: number): { index: string; segment: LaneSegment | null; unknown: boolean }[] {
  return layout.lanes.map((lane) => {
    const c = lane.cover[i]!;
    return { index: lane.index.name, segment: c >= 0 ? (lane.segments[c] ?? null) : null, unknown: c === UNKNOWN };
  });
}

/** Names of the indexes that keep fragment positions i and i + 1 apart: other segments cover the one than the other. */
export function apartIn(layout: Layout, i: number): string[] {
  return layout.lanes.filter((lane) => lane.cover[i] !== lane.cover[i + 1]).map((lane) => lane.index.name);
}

/** Consecutive fragments with the same cover, as runs; the table view and the tests read these. */
export function coverRuns(lane: Lane, limit = Infinity): { from: number; to: number; cover: number }[] {
  const { starts, covers } = lane.runs;
  return Array.from(covers.subarray(0, Math.min(covers.length, limit)), (cover, r) => ({ from: starts[r]!, to: starts[r + 1]!, cover }));
}
