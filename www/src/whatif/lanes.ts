// The layout a plan would lead to, as lanes that the map's painter can draw. Pure.

import type { LayoutColumns } from "../engine/documents.js";
import { assignColours } from "../map/palette.js";
import type { DrawnLane } from "../map/draw.js";
import type { LaneSegment, Layout } from "../map/model.js";
import { makeRuns } from "../map/strip.js";

/** Segments that exist keep the colour they have on the map; new ones get one that no neighbour has. */
export function forecastLanes(columns: LayoutColumns, layout: Layout): (DrawnLane & { name: string })[] {
  return columns.coverage.map(({ index, uuids, segment: cover }) => {
    const known = new Map(layout.lanes.find((lane) => lane.index.name === index)?.segments.map((segment) => [segment.uuid, segment]) ?? []);
    const segments = uuids.map((uuid, age): LaneSegment => {
      const old = known.get(uuid);
      const info = old?.info ?? { uuid, fragment_ids: [], effective_fragment_ids: [], retired_fragment_ids: [], dataset_version: Number.MAX_SAFE_INTEGER, index_version: null, created_at: String(age).padStart(9, "0"), size_bytes: null, files: null, base_id: null, covering_fields: [], status: "", status_reason: null };
      return { uuid, info: info as LaneSegment["info"], colour: old?.colour ?? 0, fragments: 0, rows: 0, first: -1, last: -1, unknown: false, derived: false };
    });
    assignColours(segments, cover);
    for (const segment of segments) segment.colour = known.get(segment.uuid)?.colour ?? segment.colour;
    return { name: index, segments, runs: makeRuns(cover), retired: new Map() };
  });
}

/** Steps of the slider for target rows: 1, 2 and 5 times powers of ten, and Lance's default among them. */
export const TARGETS: readonly number[] = [100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_048_576, 2_000_000, 5_000_000, 10_000_000, 100_000_000];

/** The step nearest to a number of rows. */
export function nearestTarget(rows: number): number {
  let best = 0;
  TARGETS.forEach((target, i) => {
    if (Math.abs(Math.log(target / rows)) < Math.abs(Math.log(TARGETS[best]! / rows))) best = i;
  });
  return best;
}
