// The one fragment axis that all lanes share. Positions are in axis units: rows, or one unit per fragment.

export type Widths = "rows" | "equal";

export interface Axis {
  widths: Widths;
  /** Fragment ids, ascending. */
  ids: Uint32Array;
  /** n + 1 positions: fragment i lies between starts[i] and starts[i + 1]. */
  starts: Float64Array;
  /** Ids that some segment still names although they are gone; drawn as ghosts beyond the axis. */
  retired: number[];
  /** Where the ghosts begin, and how wide each is. */
  ghostStart: number;
  ghostWidth: number;
  /** Whole length, ghosts included. */
  total: number;
}

/** Ghosts never take more than this share of the axis, however many there are. */
const GHOST_SHARE = 0.08;

export function makeAxis(ids: Uint32Array, physicalRows: Float64Array, widths: Widths, retired: number[]): Axis {
  const n = ids.length;
  const starts = new Float64Array(n + 1);
  // A fragment that does not record its rows, or has none, still needs a place: it gets the mean of the others.
  let known = 0;
  let sum = 0;
  if (widths === "rows") {
    for (let i = 0; i < n; i += 1) {
      const rows = physicalRows[i]!;
      if (rows > 0) {
        known += 1;
        sum += rows;
      }
    }
  }
  const mean = known > 0 ? sum / known : 1;
  let at = 0;
  for (let i = 0; i < n; i += 1) {
    const rows = physicalRows[i]!;
    at += widths === "equal" ? 1 : rows > 0 ? rows : mean;
    starts[i + 1] = at;
  }
  const unit = n > 0 ? at / n : 1;
  if (retired.length === 0) return { widths, ids, starts, retired, ghostStart: at, ghostWidth: 0, total: Math.max(at, 1e-9) };
  const base = at > 0 ? at : unit * 4;
  const gap = Math.min(unit * 0.5, base * 0.02);
  const ghostWidth = Math.min(unit, (base * GHOST_SHARE) / retired.length);
  return { widths, ids, starts, retired, ghostStart: at + gap, ghostWidth, total: at + gap + ghostWidth * retired.length };
}

/** Position of the fragment that holds axis position `at`; -1 outside. */
export function fragmentAt(axis: Axis, at: number): number {
  const n = axis.ids.length;
  if (n === 0 || at < 0 || at >= axis.starts[n]!) return -1;
  let lo = 0;
  let hi = n - 1;
  while (lo < hi) {
    const mid = (lo + hi + 1) >> 1;
    if (axis.starts[mid]! <= at) lo = mid;
    else hi = mid - 1;
  }
  return lo;
}

/** Position of a fragment id in `ids`; -1 when it is not live. */
export function positionOf(ids: Uint32Array, id: number): number {
  let lo = 0;
  let hi = ids.length - 1;
  while (lo <= hi) {
    const mid = (lo + hi) >> 1;
    const found = ids[mid]!;
    if (found === id) return mid;
    if (found < id) lo = mid + 1;
    else hi = mid - 1;
  }
  return -1;
}

/** The visible part of the axis, in axis units, and the pixels it is shown on. */
export interface Viewport {
  from: number;
  to: number;
  width: number;
}

export function toPixel(view: Viewport, at: number): number {
  return ((at - view.from) / (view.to - view.from)) * view.width;
}

export function toAxis(view: Viewport, pixel: number): number {
  return view.from + (pixel / view.width) * (view.to - view.from);
}

/** First and one past the last fragment that touches the viewport. */
export function visible(axis: Axis, view: Viewport): [number, number] {
  const n = axis.ids.length;
  if (n === 0) return [0, 0];
  const end = axis.starts[n]!;
  if (view.from >= end || view.to <= 0) return [0, 0];
  const first = fragmentAt(axis, Math.max(0, view.from));
  const last = fragmentAt(axis, Math.min(view.to, end * (1 - 1e-12)));
  return [Math.max(0, first), (last < 0 ? n - 1 : last) + 1];
}

/** A part of the axis kept inside it; the length survives where it can. */
export function clampWindow(total: number, from: number, to: number, smallest: number): [number, number] {
  const length = Math.min(total, Math.max(smallest, to - from));
  const start = Math.min(Math.max(0, from), total - length);
  return [start, start + length];
}

/** Zooms by `factor` (above 1 is closer) and leaves `anchor` under the same pixel. */
export function zoomWindow(total: number, from: number, to: number, factor: number, anchor: number, smallest: number): [number, number] {
  const length = Math.min(total, Math.max(smallest, (to - from) / factor));
  const share = (anchor - from) / (to - from);
  return clampWindow(total, anchor - share * length, anchor + (1 - share) * length, smallest);
}
