// One lane cut into what can be painted: boxes while a fragment is at least a pixel wide, density columns below that.

import type { Axis, Viewport } from './axis.js';
import { toPixel, visible } from './axis.js';
import { UNCOVERED, UNKNOWN } from './model.js';

export interface Box {
  x: number;
  width: number;
  /** Cover value of the fragments in the box. */
  cover: number;
  from: number;
  to: number;
}

/** One pixel column of a lane: shares of the fragments (by axis length) that fall into it. */
export interface Column {
  x: number;
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

/** Runs of equal cover, clipped to the view. A run is never thinner than one pixel. */
export function boxes(axis: Axis, view: Viewport, cover: Int32Array): Box[] {
  const [from, to] = visible(axis, view);
  const found: Box[] = [];
  let start = from;
  for (let i = from + 1; i <= to; i += 1) {
    if (i < to && cover[i] === cover[start]) continue;
    if (to > from) {
      const x = Math.max(-2, toPixel(view, axis.starts[start]!));
      const end = Math.min(view.width + 2, toPixel(view, axis.starts[i]!));
      found.push({ x, width: Math.max(1, end - x), cover: cover[start]!, from: start, to: i });
    }
    start = i;
  }
  return found;
}

/** Density per pixel column. Every visible fragment is counted in every column it touches: none is sampled away. */
export function columns(axis: Axis, view: Viewport, cover: Int32Array): Column[] {
  const width = Math.max(1, Math.ceil(view.width));
  const [from, to] = visible(axis, view);
  const covered = new Float64Array(width);
  const uncovered = new Float64Array(width);
  const unknown = new Float64Array(width);
  const segment = new Int32Array(width).fill(-1);
  const best = new Float64Array(width);
  const touched = new Uint8Array(width);
  let runSegment = -1;
  let runColumn = -1;
  let run = 0;
  const settle = () => {
    if (runColumn >= 0 && runSegment >= 0 && run > best[runColumn]!) {
      best[runColumn] = run;
      segment[runColumn] = runSegment;
    }
    run = 0;
  };
  const scale = view.width / (view.to - view.from);
  for (let i = from; i < to; i += 1) {
    const a = Math.max(0, (axis.starts[i]! - view.from) * scale);
    const b = Math.min(width, (axis.starts[i + 1]! - view.from) * scale);
    const c = cover[i]!;
    const first = Math.min(width - 1, Math.floor(a));
    const last = Math.min(width - 1, Math.max(first, Math.ceil(b) - 1));
    for (let x = first; x <= last; x += 1) {
      const share = Math.max(Math.min(b, x + 1) - Math.max(a, x), 1e-9);
      touched[x] = 1;
      if (c >= 0) {
        covered[x] = covered[x]! + share;
        if (x !== runColumn || c !== runSegment) {
          settle();
          runColumn = x;
          runSegment = c;
        }
        run += share;
      } else if (c === UNKNOWN) unknown[x] = unknown[x]! + share;
      else if (c === UNCOVERED) uncovered[x] = uncovered[x]! + share;
    }
  }
  settle();
  const found: Column[] = [];
  for (let x = 0; x < width; x += 1) {
    if (touched[x]) found.push({ x, segment: segment[x]!, covered: covered[x]!, unknown: unknown[x]!, uncovered: uncovered[x]! });
  }
  return found;
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
