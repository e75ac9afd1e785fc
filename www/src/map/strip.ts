// One lane cut into what can be painted: boxes while a fragment is at least a pixel wide, density columns below that.

import type { Axis, Viewport } from "./axis.js";
import { toPixel, visible } from "./axis.js";
import { UNKNOWN } from "./cover.js";
import { laneColumns, makeLanePyramid, makeRowPyramid, mergeColumns, pixelEdges, rowsPerColumn } from "./pyramid.js";
import type { LanePyramid, RowPyramid } from "./pyramid.js";

export interface Box {
  x: number;
  width: number;
  /** Cover value of the fragments in the box. */
  cover: number;
  from: number;
  to: number;
}

/** One pixel column of a lane, or several equal ones: shares of the fragments (by axis length) that fall into it. */
export interface Column {
  x: number;
  width: number;
  /** Segment covering most of the column; -1 when none does. */
  segment: number;
  covered: number;
  unknown: number;
  /** Above zero as soon as one single fragment in the column is uncovered. */
  uncovered: number;
}

/** Whether the fragments in view are wide enough to be drawn one by one. */
export function fragmentsFit(axis: Axis, view: Viewport): boolean {
  const [from, to] = visible(axis, view);
  if (to <= from) return true;
  const shown = Math.min(view.to, axis.starts[to]!) - Math.max(view.from, axis.starts[from]!);
  const pixels = (shown / (view.to - view.from)) * view.width;
  return to - from <= pixels;
}

/** Stretches of equal cover: where each starts, with one more start at the end, and its cover. Made once per lane. */
export interface Runs {
  starts: Int32Array;
  covers: Int32Array;
}

export function makeRuns(cover: Int32Array): Runs {
  const n = cover.length;
  let count = n > 0 ? 1 : 0;
  for (let i = 1; i < n; i += 1) if (cover[i] !== cover[i - 1]) count += 1;
  const starts = new Int32Array(count + 1);
  const covers = new Int32Array(count);
  let at = 0;
  for (let i = 0; i < n; i += 1) {
    if (i > 0 && cover[i] === cover[i - 1]) continue;
    starts[at] = i;
    covers[at] = cover[i]!;
    at += 1;
  }
  starts[count] = n;
  return { starts, covers };
}

/** The run that holds fragment position i. */
function runAt(runs: Runs, i: number): number {
  let lo = 0;
  let hi = runs.covers.length - 1;
  while (lo < hi) {
    const mid = (lo + hi + 1) >> 1;
    if (runs.starts[mid]! <= i) lo = mid;
    else hi = mid - 1;
  }
  return lo;
}

/** Runs of equal cover, clipped to the view. A run is never thinner than one pixel. */
export function boxes(axis: Axis, view: Viewport, runs: Runs): Box[] {
  const [from, to] = visible(axis, view);
  const found: Box[] = [];
  if (to <= from) return found;
  for (let r = runAt(runs, from); r < runs.covers.length && runs.starts[r]! < to; r += 1) {
    const first = Math.max(from, runs.starts[r]!);
    const end = Math.min(to, runs.starts[r + 1]!);
    const x = Math.max(-2, toPixel(view, axis.starts[first]!));
    const right = Math.min(view.width + 2, toPixel(view, axis.starts[end]!));
    found.push({ x, width: Math.max(1, right - x), cover: runs.covers[r]!, from: first, to: end });
  }
  return found;
}

/** Up to so many runs or fragments per pixel are looked at one by one; beyond that their pyramid is. */
const FEW = 4;

const pyramids = new WeakMap<Runs, LanePyramid>();
const rowPyramids = new WeakMap<Float64Array, RowPyramid>();
/** All lanes of a frame share one view. */
const edges = new WeakMap<Viewport, Int32Array>();

function pyramidOf(axis: Axis, runs: Runs): LanePyramid {
  let found = pyramids.get(runs);
  if (found?.axis !== axis) pyramids.set(runs, found = makeLanePyramid(axis, runs));
  return found;
}

function edgesOf(axis: Axis, view: Viewport): Int32Array {
  let found = edges.get(view);
  if (!found) edges.set(view, found = pixelEdges(axis, view));
  return found;
}

/**
 * Density per pixel column. Every run is counted in every column it touches, however short it is: none is sampled away. Neighbouring
 * columns that are wholly one segment come as one wide column.
 */
export function columns(axis: Axis, view: Viewport, runs: Runs): Column[] {
  const width = Math.max(1, Math.ceil(view.width));
  const [from, to] = visible(axis, view);
  if (to > from && runAt(runs, to - 1) - runAt(runs, from) > width * FEW) return mergeColumns(laneColumns(pyramidOf(axis, runs), view, edgesOf(axis, view)));
  const covered = new Float64Array(width);
  const uncovered = new Float64Array(width);
  const unknown = new Float64Array(width);
  const segment = new Int32Array(width).fill(-1);
  const best = new Float64Array(width);
  const scale = view.width / (view.to - view.from);
  for (let r = to > from ? runAt(runs, from) : runs.covers.length; r < runs.covers.length && runs.starts[r]! < to; r += 1) {
    const c = runs.covers[r]!;
    const into = c >= 0 ? covered : c === UNKNOWN ? unknown : uncovered;
    const a = Math.max(0, (axis.starts[runs.starts[r]!]! - view.from) * scale);
    const b = Math.min(width, (axis.starts[runs.starts[r + 1]!]! - view.from) * scale);
    const first = Math.min(width - 1, Math.floor(a));
    const last = Math.min(width - 1, Math.max(first, Math.ceil(b) - 1));
    for (let x = first; x <= last; x += 1) {
      const share = Math.max(Math.min(b, x + 1) - Math.max(a, x), 1e-9);
      into[x] = into[x]! + share;
      if (c >= 0 && share > best[x]!) {
        best[x] = share;
        segment[x] = c;
      }
    }
  }
  return mergeColumns({ covered, unknown, uncovered, segment });
}

/** How a density column splits a lane's height: something uncovered or unknown always gets at least `least` pixels. */
export function splitHeight(column: Column, height: number, least: number): { covered: number; unknown: number; uncovered: number } {
  const whole = column.covered + column.unknown + column.uncovered;
  if (whole <= 0) return { covered: 0, unknown: 0, uncovered: 0 };
  const part = (share: number) => (share > 0 ? Math.max(least, Math.round((share / whole) * height)) : 0);
  let uncovered = part(column.uncovered);
  let unknown = part(column.unknown);
  if (column.covered <= 0) {
    if (column.unknown <= 0) uncovered = height;
    else unknown = height - uncovered;
    return { covered: 0, unknown, uncovered };
  }
  uncovered = Math.min(uncovered, height - 1 - (unknown > 0 ? least : 0));
  unknown = Math.min(unknown, height - 1 - uncovered);
  return { covered: height - unknown - uncovered, unknown, uncovered };
}

export interface RowColumn {
  x: number;
  /** Largest physical rows of a fragment in the column, so that a tall one is never averaged away. */
  rows: number;
  /** Deleted share of the rows in the column; above zero as soon as one row is deleted. */
  deleted: number;
}

/** Rows and deletions per pixel column, for views with fragments narrower than a pixel. */
export function rowColumns(axis: Axis, view: Viewport, physical: Float64Array, deleted: Float64Array): RowColumn[] {
  const width = Math.max(1, Math.ceil(view.width));
  const [from, to] = visible(axis, view);
  if (to - from > width * FEW) {
    let levels = rowPyramids.get(physical);
    if (!levels) rowPyramids.set(physical, levels = makeRowPyramid(physical, deleted));
    return rowsPerColumn(levels, axis, view, edgesOf(axis, view), physical, deleted);
  }
  const most = new Float64Array(width).fill(-1);
  const rows = new Float64Array(width);
  const gone = new Float64Array(width);
  const scale = view.width / (view.to - view.from);
  for (let i = from; i < to; i += 1) {
    const first = Math.min(width - 1, Math.max(0, Math.floor((axis.starts[i]! - view.from) * scale)));
    const last = Math.min(width - 1, Math.max(first, Math.ceil((axis.starts[i + 1]! - view.from) * scale) - 1));
    const p = Number.isNaN(physical[i]!) ? 0 : physical[i]!;
    const d = Number.isNaN(deleted[i]!) ? 0 : deleted[i]!;
    for (let x = first; x <= last; x += 1) {
      if (p > most[x]!) most[x] = p;
      rows[x] = rows[x]! + p;
      gone[x] = gone[x]! + d;
    }
  }
  const found: RowColumn[] = [];
  for (let x = 0; x < width; x += 1) {
    if (most[x]! >= 0) found.push({ x, rows: most[x]!, deleted: rows[x]! > 0 ? gone[x]! / rows[x]! : 0 });
  }
  return found;
}
