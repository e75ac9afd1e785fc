// A layout small: rows, a lane per index, and what a compaction would merge, on an axis that is as long for every plan.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { LayoutColumns } from "../engine/documents.js";
import { name } from "../lib/format.js";
import { makeAxis, toPixel } from "../map/axis.js";
import { drawLane } from "../map/draw.js";
import type { Layout } from "../map/model.js";
import { fragmentsFit, rowColumns } from "../map/strip.js";
import { makeFills, readTheme } from "../map/theme.js";
import { makeGroups } from "../map/groups.js";
import { forecastLanes } from "./lanes.js";

const ROWS = 28;
const LANE = 18;
const GAP = 4;
const MARKS = 16;
/** More lanes than this are told in the numbers only. */
const LANES_SHOWN = 8;

export function Strips({ columns, layout, title, themeStamp }: { columns: LayoutColumns; layout: Layout; title: string; themeStamp: number }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const holder = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const axis = useMemo(() => makeAxis(columns.ids, columns.physical_rows, "rows", []), [columns]);
  const lanes = useMemo(() => forecastLanes(columns, layout).slice(0, LANES_SHOWN), [columns, layout]);
  const marks = useMemo(() => makeGroups(columns).list, [columns]);
  const height = ROWS + GAP + lanes.length * (LANE + GAP) + MARKS;
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    if (holder.current) observer.observe(holder.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const surface = canvas.current;
    const c = surface?.getContext("2d");
    if (!surface || !c || width <= 0) return;
    const ratio = window.devicePixelRatio || 1;
    surface.width = Math.round(width * ratio);
    surface.height = Math.round(height * ratio);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    const theme = readTheme(surface, window.matchMedia("print").matches);
    const fills = makeFills(c, theme, ratio);
    const view = { from: 0, to: axis.total, width };
    const single = fragmentsFit(axis, view);
    const tallest = columns.physical_rows.reduce((most, rows) => Math.max(most, rows), 1);
    for (const column of rowColumns(axis, view, columns.physical_rows, columns.deleted_rows)) {
      const h = Math.max(1, (column.rows / tallest) * ROWS);
      c.fillStyle = theme.rows;
      c.fillRect(column.x, ROWS - h, 1, h);
      if (column.deleted > 0) {
        c.fillStyle = theme.deleted;
        c.fillRect(column.x, ROWS - Math.max(2, h * column.deleted), 1, Math.max(2, h * column.deleted));
      }
    }
    c.fillStyle = theme.ground;
    if (single) for (let i = 1; i < columns.ids.length; i += 1) c.fillRect(toPixel(view, axis.starts[i]!) - 0.5, 0, 1, ROWS);
    lanes.forEach((lane, l) => drawLane(c, lane, axis, view, ROWS + GAP + l * (LANE + GAP), LANE, theme, fills, single, null));
    const y = ROWS + GAP + lanes.length * (LANE + GAP);
    c.strokeStyle = theme.muted;
    c.lineWidth = 1;
    c.beginPath();
    for (const { from, to, frozen } of marks) {
      if (frozen) continue;
      const a = Math.round(toPixel(view, axis.starts[from]!)) + 1.5;
      const b = Math.max(a + 1, Math.round(toPixel(view, axis.starts[to]!)) - 1.5);
      c.moveTo(a, y);
      c.lineTo(a, y + 6.5);
      c.lineTo(b, y + 6.5);
      c.lineTo(b, y);
    }
    c.stroke();
    c.strokeStyle = theme.deleted;
    c.beginPath();
    let last = -Infinity;
    for (const { from: i, frozen } of marks) {
      if (!frozen) continue;
      const x = (toPixel(view, axis.starts[i]!) + toPixel(view, axis.starts[i + 1]!)) / 2;
      if (x - last < 3) continue; // closer crosses would be one smear
      last = x;
      c.moveTo(x - 3, y + 1);
      c.lineTo(x + 3, y + 7);
      c.moveTo(x + 3, y + 1);
      c.lineTo(x - 3, y + 7);
    }
    c.stroke();
  }, [axis, lanes, marks, width, height, themeStamp]);
  return (
    <figure class="strips">
      <figcaption>{title}</figcaption>
      <div class="strips-body">
        <div class="strips-labels" aria-hidden="true" style={{ paddingTop: `${ROWS + GAP}px` }}>{lanes.map((lane) => <span key={lane.name} title={lane.name} style={{ height: `${LANE}px`, marginBottom: `${GAP}px` }}>{name(lane.name)}</span>)}</div>
        <div ref={holder} class="strips-canvas" style={{ height: `${height}px` }}><canvas ref={canvas} role="img" aria-label={`${title}: ${columns.ids.length} fragments`} style={{ width: `${width}px`, height: `${height}px` }} /></div>
      </div>
    </figure>
  );
}
