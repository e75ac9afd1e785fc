// Sums of a lane over blocks of fragments, of blocks over blocks, and so on: a pixel column of a far view asks a few blocks instead of
// every fragment under it, so that a frame costs by its pixels and not by the table. Nothing is sampled: every fragment is in the sums.

import type { Axis, Viewport } from "./axis.js";
import { fragmentAt } from "./axis.js";
import { UNKNOWN } from "./cover.js";
import type { Column, RowColumn, Runs } from "./strip.js";

/** Fragments in a block of the lowest level; those at the ends of a pixel column, which fill no block, are looked at one by one. */
const BLOCK = 16;

/**
 * First fragment of every pixel column, and of the one behind the last: column x holds the fragments from edges[x] to edges[x + 1],
 * of which it may share both. n where the axis has ended.
 */
export function pixelEdges(axis: Axis, view: Viewport): Int32Array {
  const width = Math.max(1, Math.ceil(view.width));
  const edges = new Int32Array(width + 1);
  const n = axis.ids.length;
  const step = (view.to - view.from) / view.width;
  let i = Math.max(0, fragmentAt(axis, Math.max(0, view.from)));
  if (view.from >= (axis.starts[n] ?? 0)) i = n;
  for (let x = 0; x <= width; x += 1) {
    const at = view.from + x * step;
    // Doubling steps, then halving ones: the next edge is near where fragments are wide and far where they are thin.
    if (i < n && axis.starts[i + 1]! <= at) {
      let reach = 1;
      while (i + reach < n && axis.starts[i + reach + 1]! <= at) reach *= 2;
      let [lo, hi] = [i + (reach >> 1), Math.min(n, i + reach)];
      while (lo < hi) {
        const mid = (lo + hi) >> 1;
        if (axis.starts[mid + 1]! <= at) lo = mid + 1;
        else hi = mid;
      }
      i = lo;
    }
    edges[x] = i;
  }
  return edges;
}

/**
 * Lengths of a lane by what covers them. `segment` is the one that covers more than half of what is covered, wherever there is such a
 * one (a majority vote: `votes` is its lead), else one of those that are there.
 */
interface Sums {
  covered: Float64Array;
  unknown: Float64Array;
  uncovered: Float64Array;
  segment: Int32Array;
  votes: Float64Array;
}

export interface LanePyramid {
  axis: Axis;
  cover: Int32Array;
  levels: Sums[];
}

function sums(n: number): Sums {
  return { covered: new Float64Array(n), unknown: new Float64Array(n), uncovered: new Float64Array(n), segment: new Int32Array(n).fill(-1), votes: new Float64Array(n) };
}

function vote(into: Sums, at: number, segment: number, votes: number): void {
  if (segment < 0) return;
  const lead = into.votes[at]!;
  if (into.segment[at] === segment) into.votes[at] = lead + votes;
  else if (votes > lead) {
    into.segment[at] = segment;
    into.votes[at] = votes - lead;
  } else into.votes[at] = lead - votes;
}

function addFragment(into: Sums, at: number, cover: number, length: number): void {
  const list = cover >= 0 ? into.covered : cover === UNKNOWN ? into.unknown : into.uncovered;
  list[at] = list[at]! + length;
  if (cover >= 0) vote(into, at, cover, length);
}

function addBlock(into: Sums, at: number, from: Sums, block: number): void {
  into.covered[at] = into.covered[at]! + from.covered[block]!;
  into.unknown[at] = into.unknown[at]! + from.unknown[block]!;
  into.uncovered[at] = into.uncovered[at]! + from.uncovered[block]!;
  vote(into, at, from.segment[block]!, from.votes[block]!);
}

export function makeLanePyramid(axis: Axis, runs: Runs): LanePyramid {
  const n = axis.ids.length;
  const cover = new Int32Array(n);
  for (let r = 0; r < runs.covers.length; r += 1) cover.fill(runs.covers[r]!, runs.starts[r], runs.starts[r + 1]);
  const lowest = sums(Math.ceil(n / BLOCK));
  for (let i = 0; i < n; i += 1) addFragment(lowest, Math.floor(i / BLOCK), cover[i]!, axis.starts[i + 1]! - axis.starts[i]!);
  const levels = [lowest];
  for (let below = lowest; below.votes.length > 1; below = levels[levels.length - 1]!) {
    const above = sums(Math.ceil(below.votes.length / 2));
    for (let b = 0; b < below.votes.length; b += 1) addBlock(above, b >> 1, below, b);
    levels.push(above);
  }
  return { axis, cover, levels };
}

/** Walks the blocks and single fragments that make up [from, to), each once. */
function cut(from: number, to: number, levels: number, block: (level: number, at: number) => void, single: (i: number) => void): void {
  let lo = Math.ceil(from / BLOCK);
  let hi = Math.floor(to / BLOCK);
  if (lo >= hi) {
    for (let i = from; i < to; i += 1) single(i);
    return;
  }
  for (let i = from; i < lo * BLOCK; i += 1) single(i);
  for (let i = hi * BLOCK; i < to; i += 1) single(i);
  for (let level = 0; lo < hi && level < levels; level += 1) {
    if (lo & 1) block(level, lo++);
    if (hi & 1) block(level, --hi);
    lo >>= 1;
    hi >>= 1;
  }
}

/** The density of every pixel column, in pixels. */
export function laneColumns(pyramid: LanePyramid, view: Viewport, edges: Int32Array): Sums {
  const { axis, cover, levels } = pyramid;
  const width = edges.length - 1;
  const n = axis.ids.length;
  const found = sums(width);
  const scale = view.width / (view.to - view.from);
  for (let x = 0; x < width; x += 1) {
    const [from, to] = [edges[x]!, edges[x + 1]!];
    if (from >= n) continue;
    const [a, b] = [view.from + x / scale, view.from + (x + 1) / scale];
    const part = (i: number) => addFragment(found, x, cover[i]!, Math.min(b, axis.starts[i + 1]!) - Math.max(a, axis.starts[i]!));
    part(from);
    if (to > from) {
      cut(from + 1, to, levels.length, (level, at) => addBlock(found, x, levels[level]!, at), part);
      if (to < n && axis.starts[to]! < b) part(to);
    }
    found.covered[x] = found.covered[x]! * scale;
    found.unknown[x] = found.unknown[x]! * scale;
    found.uncovered[x] = found.uncovered[x]! * scale;
  }
  return found;
}

/** Columns as the painter takes them; neighbours that are wholly one segment come as one. */
export function mergeColumns({ covered, unknown, uncovered, segment }: Pick<Sums, "covered" | "unknown" | "uncovered" | "segment">): Column[] {
  const found: Column[] = [];
  let wide: Column | null = null;
  for (let x = 0; x < segment.length; x += 1) {
    if (covered[x]! + unknown[x]! + uncovered[x]! <= 0) {
      wide = null;
      continue;
    }
    const plain = (covered[x]! > 0 ? 1 : 0) + (unknown[x]! > 0 ? 1 : 0) + (uncovered[x]! > 0 ? 1 : 0) === 1;
    if (wide && plain && wide.segment === segment[x] && wide.unknown > 0 === unknown[x]! > 0) {
      wide.width += 1;
      wide.covered += covered[x]!;
      wide.unknown += unknown[x]!;
      wide.uncovered += uncovered[x]!;
      continue;
    }
    const column: Column = { x, width: 1, segment: segment[x]!, covered: covered[x]!, unknown: unknown[x]!, uncovered: uncovered[x]! };
    found.push(column);
    wide = plain ? column : null;
  }
  return found;
}

/** Rows of blocks of fragments: the most of one, the sum, and the deleted ones. */
interface RowSums {
  most: Float64Array;
  rows: Float64Array;
  gone: Float64Array;
}

export type RowPyramid = RowSums[];

function addRows(into: RowSums, at: number, most: number, rows: number, gone: number): void {
  if (most > into.most[at]!) into.most[at] = most;
  into.rows[at] = into.rows[at]! + rows;
  into.gone[at] = into.gone[at]! + gone;
}

const rowSums = (n: number): RowSums => ({ most: new Float64Array(n).fill(-1), rows: new Float64Array(n), gone: new Float64Array(n) });
const orNone = (value: number) => (Number.isNaN(value) ? 0 : value);

export function makeRowPyramid(physical: Float64Array, deleted: Float64Array): RowPyramid {
  const lowest = rowSums(Math.ceil(physical.length / BLOCK));
  for (let i = 0; i < physical.length; i += 1) addRows(lowest, Math.floor(i / BLOCK), orNone(physical[i]!), orNone(physical[i]!), orNone(deleted[i]!));
  const levels = [lowest];
  for (let below = lowest; below.most.length > 1; below = levels[levels.length - 1]!) {
    const above = rowSums(Math.ceil(below.most.length / 2));
    for (let b = 0; b < below.most.length; b += 1) addRows(above, b >> 1, below.most[b]!, below.rows[b]!, below.gone[b]!);
    levels.push(above);
  }
  return levels;
}

/** Rows and deletions of every pixel column; a fragment counts whole in each column it touches. */
export function rowsPerColumn(levels: RowPyramid, axis: Axis, view: Viewport, edges: Int32Array, physical: Float64Array, deleted: Float64Array): RowColumn[] {
  const n = axis.ids.length;
  const scale = view.width / (view.to - view.from);
  const one = rowSums(1);
  const found: RowColumn[] = [];
  for (let x = 0; x + 1 < edges.length; x += 1) {
    const from = edges[x]!;
    if (from >= n) continue;
    const to = edges[x + 1]!;
    const end = to < n && axis.starts[to]! < view.from + (x + 1) / scale ? to + 1 : Math.max(from + 1, to);
    one.most[0] = -1;
    one.rows[0] = 0;
    one.gone[0] = 0;
    cut(from, end, levels.length, (level, at) => addRows(one, 0, levels[level]!.most[at]!, levels[level]!.rows[at]!, levels[level]!.gone[at]!), (i) => addRows(one, 0, orNone(physical[i]!), orNone(physical[i]!), orNone(deleted[i]!)));
    found.push({ x, rows: one.most[0], deleted: one.rows[0]! > 0 ? one.gone[0]! / one.rows[0]! : 0 });
  }
  return found;
}
