// Paints the layout map. Geometry comes from axis.ts and strip.ts; this file only puts ink on a canvas.

import { scaleLinear } from "d3-scale";
import { shortUuid } from "../lib/format.js";
import type { Axis, Viewport } from "./axis.js";
import { toPixel, visible } from "./axis.js";
import { groupsIn } from "./groups.js";
import type { Groups } from "./groups.js";
import type { LaneBox } from "./lanes.js";
import type { Lane, Layout } from "./model.js";
import { UNKNOWN } from "./model.js";
import { pixelEdges } from "./pyramid.js";
import { boxes, columns, fragmentsFit, rowColumns, splitHeight } from "./strip.js";
import type { RowColumn } from "./strip.js";
import type { Fills, MapTheme } from "./theme.js";

/** A run of a refresh that is being built: positions on the axis. */
export interface GhostRun {
  index: string;
  positions: Int32Array;
  state: "waiting" | "running" | "done";
}

export interface Marks {
  /** Fragments whose column is outlined through all lanes. */
  fragments: number[];
  /** Segment that stays lit while the others step back. */
  segment: { lane: number; segment: number } | null;
  /** Index whose lane is marked. */
  lane: number | null;
  hover: number;
  ghosts: GhostRun[];
}

export interface Scene {
  layout: Layout;
  axis: Axis;
  view: Viewport;
  boxes: LaneBox[];
  marks: Marks;
  /** What a compaction would rewrite together; null while nobody knows. */
  groups: Groups | null;
}

/** Height of the least that is painted of something uncovered: one fragment among thousands still has to be seen. */
const LEAST = 9;
const FADED = 0.25;
/** Inks beside those of segments. */
const [INK_DOTS, INK_HATCH, INK_RARE] = [-1, -2, -3];

export function drawMap(c: CanvasRenderingContext2D, scene: Scene, theme: MapTheme, fills: Fills, height: number): void {
  const { layout, axis, view, marks } = scene;
  c.clearRect(0, 0, view.width, height);
  c.fillStyle = theme.ground;
  c.fillRect(0, 0, view.width, height);
  const single = fragmentsFit(axis, view);
  const perPixel = rowColumns(axis, view, layout.columns.physical_rows, layout.columns.deleted_rows);
  for (const box of scene.boxes) {
    if (box.kind === "rows") drawRows(c, scene, box, theme, single, perPixel);
    else if (box.kind === "deleted") drawDeleted(c, scene, box, theme, perPixel);
    else if (box.kind === "groups") drawGroups(c, scene, box, theme);
    else if (box.kind === "axis") drawAxis(c, scene, box, theme);
    else {
      const lane = layout.lanes[box.lane];
      if (lane) drawLane(c, lane, axis, view, box.y, box.height, theme, fills, single, marks.segment === null ? null : marks.segment.lane === box.lane ? marks.segment.segment : -1);
    }
  }
  for (const ghost of marks.ghosts) drawGhost(c, scene, ghost, theme);
  if (marks.segment) bandOfSegment(c, scene, theme, height);
  if (marks.hover >= 0) band(c, scene, marks.hover, height, theme, false);
  for (const i of marks.fragments) band(c, scene, i, height, theme, true);
}

function drawRows(c: CanvasRenderingContext2D, { layout, axis, view }: Scene, box: LaneBox, theme: MapTheme, single: boolean, perPixel: RowColumn[]): void {
  const { physical_rows: physical, deleted_rows: deleted } = layout.columns;
  const tall = scaleLinear().domain([0, Math.max(1, layout.maxRows)]).range([0, box.height]);
  const foot = box.y + box.height;
  c.fillStyle = theme.line;
  c.fillRect(0, foot, Math.max(0, Math.min(view.width, toPixel(view, axis.starts[axis.ids.length] ?? 0))), 1);
  const bar = (x: number, width: number, rows: number, share: number) => {
    const h = Math.max(1, tall(rows));
    c.fillStyle = theme.rows;
    c.fillRect(x, foot - h, width, h);
    if (share <= 0) return;
    // The deleted part is the foot of the bar; one deleted row still shows.
    c.fillStyle = theme.deleted;
    const gone = Math.max(1, h * share);
    c.fillRect(x, foot - gone, width, gone);
  };
  if (!single) {
    c.fillStyle = theme.rows;
    const heights = perPixel.map((column) => Math.max(1, tall(column.rows)));
    perPixel.forEach((column, k) => c.fillRect(column.x, foot - heights[k]!, 1, heights[k]!));
    c.fillStyle = theme.deleted;
    perPixel.forEach((column, k) => {
      const gone = Math.max(1, heights[k]! * column.deleted);
      if (column.deleted > 0) c.fillRect(column.x, foot - gone, 1, gone);
    });
    return;
  }
  const [from, to] = visible(axis, view);
  for (let i = from; i < to; i += 1) {
    const x = toPixel(view, axis.starts[i]!);
    const width = toPixel(view, axis.starts[i + 1]!) - x;
    const gap = width > 4 ? 1 : 0;
    const rows = physical[i]!;
    if (Number.isNaN(rows)) {
      c.strokeStyle = theme.muted;
      c.setLineDash([2, 2]);
      c.strokeRect(x + 0.5, box.y + box.height / 2, Math.max(1, width - gap - 1), box.height / 2 - 0.5);
      c.setLineDash([]);
      continue;
    }
    bar(x, Math.max(1, width - gap), rows, rows > 0 && deleted[i]! > 0 ? deleted[i]! / rows : 0);
  }
}

function drawDeleted(c: CanvasRenderingContext2D, { axis, view }: Scene, box: LaneBox, theme: MapTheme, perPixel: RowColumn[]): void {
  c.fillStyle = theme.deleted;
  for (const column of perPixel) {
    if (column.deleted <= 0) continue;
    const h = Math.max(3, Math.round(box.height * column.deleted));
    c.fillRect(column.x, box.y + box.height - h, 1, h);
  }
  c.fillStyle = theme.line;
  c.fillRect(0, box.y + box.height, Math.max(0, Math.min(view.width, toPixel(view, axis.starts[axis.ids.length] ?? 0))), 1);
}

/** What the painter reads of a lane. */
export type DrawnLane = Pick<Lane, "segments" | "runs" | "retired">;

/** One index: segments, hatch where nothing covers, dots where nobody knows, ghosts for ids that are gone. `lit`: null all, else one. */
export function drawLane(
  c: CanvasRenderingContext2D, lane: DrawnLane, axis: Axis, view: Viewport, y: number, height: number, theme: MapTheme, fills: Fills, single: boolean, lit: number | null,
): void {
  const alpha = (segment: number) => (lit === null || lit === segment ? 1 : FADED);
  if (!single) {
    // Colour by colour: to change the ink for every column costs more than to paint it.
    const inks = new Map<number, number[]>();
    const paint = (ink: number, x: number, top: number, width: number, tall: number) => {
      const list = inks.get(ink);
      if (list) list.push(x, top, width, tall);
      else inks.set(ink, [x, top, width, tall]);
    };
    const rare: number[] = [];
    for (const column of columns(axis, view, lane.runs)) {
      const parts = splitHeight(column, height, LEAST);
      const segment = lane.segments[column.segment];
      if (parts.covered > 0 && segment) paint(segment.colour * 2 + (alpha(column.segment) < 1 ? 1 : 0), column.x, y, column.width, parts.covered);
      if (parts.unknown > 0) paint(INK_DOTS, column.x, y + parts.covered, column.width, parts.unknown);
      // Two pixels wide where it is a small part, and over what the next column paints.
      if (parts.uncovered > 0 && parts.covered > 0) rare.push(Math.min(column.x, view.width - 3), parts.uncovered);
      else if (parts.uncovered > 0) paint(parts.unknown > 0 ? INK_RARE : INK_HATCH, column.x, y + height - parts.uncovered, column.width, parts.uncovered);
    }
    for (const [ink, list] of inks) {
      c.globalAlpha = ink >= 0 && ink % 2 === 1 ? FADED : 1;
      c.fillStyle = ink === INK_DOTS ? fills.dots : ink === INK_HATCH ? fills.hatch : ink === INK_RARE ? theme.hatch : fills.segment(ink >> 1);
      for (let k = 0; k < list.length; k += 4) c.fillRect(list[k]!, list[k + 1]!, list[k + 2]!, list[k + 3]!);
    }
    c.globalAlpha = 1;
    // A rim of ground keeps the marks apart from any segment's colour.
    c.fillStyle = theme.ground;
    for (let k = 0; k < rare.length; k += 2) c.fillRect(rare[k]! - 1, y + height - rare[k + 1]! - 1, 4, rare[k + 1]! + 1);
    c.fillStyle = theme.hatch;
    for (let k = 0; k < rare.length; k += 2) c.fillRect(rare[k]!, y + height - rare[k + 1]!, 2, rare[k + 1]!);
  } else {
    const separators = new Path2D();
    const [shownFrom, shownTo] = visible(axis, view);
    const separate = shownTo - shownFrom < view.width / 8;
    for (const box of boxes(axis, view, lane.runs)) {
      const gap = box.width > 4 ? 1 : 0;
      const segment = lane.segments[box.cover];
      if (!segment) {
        c.fillStyle = box.cover === UNKNOWN ? fills.dots : fills.hatch;
        c.fillRect(box.x, y, box.width - gap, height);
        c.strokeStyle = theme.line;
        c.lineWidth = 1;
        if (box.width > 4) c.strokeRect(box.x + 0.5, y + 0.5, box.width - gap - 1, height - 1);
      } else {
        c.globalAlpha = alpha(box.cover);
        c.fillStyle = fills.segment(segment.colour);
        c.fillRect(box.x, y, box.width - gap, height);
        if (box.width > 4) {
          c.strokeStyle = fills.edge(segment.colour);
          c.lineWidth = 1;
          // Stitches say that the coverage was carried over, not built on these fragments.
          c.setLineDash(segment.derived ? [3, 2] : []);
          c.strokeRect(box.x + 0.5, y + 0.5, box.width - gap - 1, height - 1);
          c.setLineDash([]);
        }
        if (box.width > 74) {
          c.font = `11px ${theme.font}`;
          if (theme.print) {
            c.fillStyle = "#fff";
            c.fillRect(Math.max(box.x, 0) + 5, y + 5, 58, height - 10);
          }
          c.fillStyle = fills.text(segment.colour);
          c.textBaseline = "middle";
          c.textAlign = "left";
          c.fillText(shortUuid(segment.uuid), Math.max(box.x, 0) + 8, y + height / 2 + 0.5);
        }
        c.globalAlpha = 1;
      }
      for (let i = box.from + 1; separate && i < box.to; i += 1) {
        const x = toPixel(view, axis.starts[i]!);
        const width = toPixel(view, axis.starts[i + 1]!) - x;
        if (width < 5 || x < 0 || x > view.width) continue;
        separators.moveTo(Math.round(x) - 0.5, y + height - 5);
        separators.lineTo(Math.round(x) - 0.5, y + height - 1);
      }
    }
    c.strokeStyle = theme.ground;
    c.globalAlpha = 0.75;
    c.lineWidth = 1;
    c.stroke(separators);
    c.globalAlpha = 1;
  }
  drawRetired(c, lane, axis, view, y, height, theme, fills);
}

function drawRetired(c: CanvasRenderingContext2D, lane: DrawnLane, axis: Axis, view: Viewport, y: number, height: number, theme: MapTheme, fills: Fills): void {
  if (lane.retired.size === 0 || axis.ghostWidth <= 0) return;
  c.lineWidth = 1;
  c.setLineDash([2, 2]);
  const outline = (segment: number, from: number, to: number) => {
    const x = toPixel(view, axis.ghostStart + from * axis.ghostWidth);
    const width = Math.max(1, toPixel(view, axis.ghostStart + to * axis.ghostWidth) - x);
    if (x > view.width || x + width < 0) return;
    c.strokeStyle = theme.print ? "#000" : fills.edge(lane.segments[segment]?.colour ?? 0);
    c.strokeRect(Math.round(x) + 0.5, y + 2.5, Math.max(1, width - 2), height - 5);
  };
  // One outline per id while there is room, else one per stretch of ids of a segment.
  const each = (axis.ghostWidth / (view.to - view.from)) * view.width >= 5;
  let start = 0;
  for (let slot = 1; slot <= axis.retired.length; slot += 1) {
    const segment = lane.retired.get(axis.retired[start]!);
    const same = slot < axis.retired.length && lane.retired.get(axis.retired[slot]!) === segment;
    if (same && !each) continue;
    if (segment !== undefined) outline(segment, start, slot);
    start = slot;
  }
  c.setLineDash([]);
}

function drawGroups(c: CanvasRenderingContext2D, { groups, axis, view }: Scene, box: LaneBox, theme: MapTheme): void {
  if (!groups) return;
  const [from, to] = visible(axis, view);
  const [first, end] = groupsIn(groups, from, to);
  const middle = box.y + box.height / 2;
  c.lineWidth = 1;
  if (end - first > view.width / 3) {
    const edges = pixelEdges(axis, view);
    const heights = new Float64Array(edges.length - 1);
    c.fillStyle = theme.muted;
    for (let x = 0; x < heights.length; x += 1) {
      const [a, b] = groupsIn(groups, edges[x]!, Math.max(edges[x]! + 1, edges[x + 1]!));
      if (a === b) continue;
      c.fillRect(x, box.y + 6, 1, box.height - 8);
      const frozen = groups.frozenBefore[b]! - groups.frozenBefore[a]!;
      if (frozen > 0) heights[x] = Math.max(3, (frozen / (b - a)) * (box.height - 8));
    }
    c.fillStyle = theme.deleted;
    heights.forEach((h, x) => { if (h > 0) c.fillRect(x, box.y + box.height - 2 - h, 1, h); });
    return;
  }
  for (const group of groups.list.slice(first, end)) {
    const x = toPixel(view, axis.starts[group.from]!);
    const end = toPixel(view, axis.starts[group.to]!);
    if (group.frozen) {
      const at = (Math.max(0, x) + Math.min(view.width, end)) / 2;
      const s = Math.max(2, Math.min(4, (end - x) / 2 - 1));
      c.strokeStyle = theme.deleted;
      c.lineWidth = 1.5;
      c.beginPath();
      c.moveTo(at - s, middle - s);
      c.lineTo(at + s, middle + s);
      c.moveTo(at - s, middle + s);
      c.lineTo(at + s, middle - s);
      c.stroke();
      c.lineWidth = 1;
      continue;
    }
    c.strokeStyle = theme.muted;
    c.beginPath();
    const a = Math.round(x) + 1.5;
    const b = Math.max(a + 1, Math.round(end) - 1.5);
    c.moveTo(a, box.y + 4);
    c.lineTo(a, middle + 3.5);
    c.lineTo(b, middle + 3.5);
    c.lineTo(b, box.y + 4);
    c.stroke();
    const shownFrom = Math.max(a, 0);
    const shownTo = Math.min(b, view.width);
    const label = String(group.to - group.from);
    if (shownTo - shownFrom > 24 + label.length * 7) {
      c.font = `11px ${theme.font}`;
      c.textBaseline = "middle";
      c.textAlign = "center";
      c.fillStyle = theme.muted;
      c.fillText(label, (shownFrom + shownTo) / 2, middle - 3);
    }
  }
}

/** Fragment ids below the lanes: as many as fit, the first always. */
function drawAxis(c: CanvasRenderingContext2D, { axis, view }: Scene, box: LaneBox, theme: MapTheme): void {
  const [from, to] = visible(axis, view);
  c.font = `11px ${theme.font}`;
  c.textBaseline = "top";
  c.fillStyle = theme.muted;
  c.strokeStyle = theme.line;
  const ticks = Math.max(1, Math.floor(view.width / 56));
  const step = niceStep((to - from) / ticks);
  let free = -Infinity;
  for (let i = Math.ceil(from / step) * step; i < to; i += step) {
    const a = toPixel(view, axis.starts[i]!);
    const b = toPixel(view, axis.starts[i + 1]!);
    const label = String(axis.ids[i]);
    const wide = b - a > 26;
    const x = wide ? (a + b) / 2 : a;
    const size = c.measureText(label).width;
    const left = wide ? x - size / 2 : x;
    if (left < 0 || left < free || left + size > view.width) continue;
    c.textAlign = "left";
    c.beginPath();
    c.moveTo(Math.round(x) + 0.5, box.y);
    c.lineTo(Math.round(x) + 0.5, box.y + 4);
    c.stroke();
    c.fillText(label, left, box.y + 6);
    free = left + size + 16;
  }
  if (axis.retired.length > 0) {
    const x = toPixel(view, axis.ghostStart);
    if (x < view.width && x > free) {
      const label = "retired";
      const size = c.measureText(label).width;
      c.fillText(label, Math.min(x, view.width - size - 2), box.y + 6);
    }
  }
}

export function niceStep(least: number): number {
  let step = 1;
  for (;;) {
    for (const m of [1, 2, 5]) if (step * m >= least) return step * m;
    step *= 10;
  }
}

export function drawGhost(c: CanvasRenderingContext2D, { layout, axis, view, boxes: lanes }: Omit<Scene, "marks" | "groups">, ghost: GhostRun, theme: MapTheme): void {
  const lane = layout.lanes.findIndex((l) => l.index.name === ghost.index);
  const box = lanes.find((b) => b.kind === "index" && b.lane === lane);
  if (!box) return;
  c.setLineDash([4, 3]);
  c.lineWidth = 1.5;
  c.strokeStyle = theme.accent;
  c.fillStyle = theme.accent;
  for (const [from, to] of stretches(ghost.positions)) {
    const x = toPixel(view, axis.starts[from]!);
    const width = Math.max(2, toPixel(view, axis.starts[to]!) - x);
    c.globalAlpha = ghost.state === "done" ? 0.45 : ghost.state === "running" ? 0.15 : 0;
    c.fillRect(x, box.y, width - 1, box.height);
    c.globalAlpha = ghost.state === "waiting" ? 0.5 : 1;
    c.strokeRect(x + 1, box.y + 1, Math.max(1, width - 3), box.height - 2);
  }
  c.globalAlpha = 1;
  c.setLineDash([]);
}

/** Ascending positions as [from, to) stretches. */
export function stretches(positions: Int32Array): [number, number][] {
  const found: [number, number][] = [];
  for (const p of positions) {
    const last = found[found.length - 1];
    if (last && last[1] === p) last[1] = p + 1;
    else found.push([p, p + 1]);
  }
  return found;
}

function band(c: CanvasRenderingContext2D, { axis, view }: Scene, i: number, height: number, theme: MapTheme, strong: boolean): void {
  if (i < 0 || i >= axis.ids.length) return;
  const x = toPixel(view, axis.starts[i]!);
  const width = Math.max(strong ? 3 : 2, toPixel(view, axis.starts[i + 1]!) - x);
  if (x > view.width || x + width < 0) return;
  c.fillStyle = theme.accent;
  c.globalAlpha = strong ? 0.14 : 0.09;
  c.fillRect(x, 0, width, height - 20);
  c.globalAlpha = 1;
  if (!strong) return;
  c.strokeStyle = theme.accent;
  c.lineWidth = 1.5;
  c.strokeRect(x - 0.25, 1, width + 0.5, height - 22);
}

/** The fragments of the lit segment, as a faint band through all lanes. */
function bandOfSegment(c: CanvasRenderingContext2D, { layout, axis, view, marks }: Scene, theme: MapTheme, height: number): void {
  if (!marks.segment) return;
  const lane = layout.lanes[marks.segment.lane];
  if (!lane) return;
  c.fillStyle = theme.accent;
  c.globalAlpha = 0.07;
  let end = -Infinity;
  for (const box of boxes(axis, view, lane.runs)) {
    if (box.cover !== marks.segment.segment) continue;
    const x = Math.max(end, box.x);
    c.fillRect(x, 0, Math.max(1, box.x + box.width - x), height - 20);
    end = x + Math.max(1, box.x + box.width - x);
  }
  c.globalAlpha = 1;
}

/** The whole axis in small: one strip per index, uncovered in the hatch's ink. Painted once; the frame moves above it. */
export function drawMinimap(c: CanvasRenderingContext2D, layout: Layout, axis: Axis, width: number, height: number, theme: MapTheme, fills: Fills): void {
  c.clearRect(0, 0, width, height);
  const view: Viewport = { from: 0, to: axis.total, width };
  const lanes = layout.lanes.slice(0, 8);
  const each = lanes.length > 0 ? Math.max(2, Math.floor((height - 4) / lanes.length)) : 0;
  if (lanes.length === 0) {
    c.fillStyle = theme.rows;
    for (const column of rowColumns(axis, view, layout.columns.physical_rows, layout.columns.deleted_rows)) {
      const h = Math.max(1, (column.rows / Math.max(1, layout.maxRows)) * (height - 4));
      c.fillRect(column.x, height - 2 - h, 1, h);
    }
  }
  lanes.forEach((lane, l) => {
    for (const column of columns(axis, view, lane.runs)) {
      const segment = lane.segments[column.segment];
      const y = 2 + l * each;
      const h = Math.max(1, each - 1);
      c.fillStyle = column.uncovered > 0 ? theme.hatch : segment ? fills.segment(segment.colour) : theme.muted;
      c.fillRect(column.x, y, column.width, h);
    }
  });
}

/** The frame around what the map shows; everything else steps back. */
export function drawMinimapFrame(c: CanvasRenderingContext2D, axis: Axis, width: number, height: number, [from, to]: [number, number], theme: MapTheme): void {
  const view: Viewport = { from: 0, to: axis.total, width };
  const x = toPixel(view, from);
  const w = Math.max(4, toPixel(view, to) - x);
  c.fillStyle = theme.ground;
  c.globalAlpha = 0.65;
  c.fillRect(0, 0, x, height);
  c.fillRect(x + w, 0, width - x - w, height);
  c.globalAlpha = 1;
  c.strokeStyle = theme.accent;
  c.lineWidth = 2;
  c.strokeRect(x + 1, 1, w - 2, height - 2);
}
