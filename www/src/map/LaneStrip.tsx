// One lane over the whole axis, for the refresh dialog: what is covered, and the runs on their way as ghosts.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { makeAxis } from "./axis.js";
import type { GhostRun } from "./draw.js";
import { drawGhost, drawLane } from "./draw.js";
import type { Layout } from "./model.js";
import { fragmentsFit } from "./strip.js";
import { makeFills, readTheme } from "./theme.js";

const HEIGHT = 28;

export function LaneStrip({ layout, index, ghosts }: { layout: Layout; index: string; ghosts: GhostRun[] }): JSX.Element | null {
  const canvas = useRef<HTMLCanvasElement>(null);
  const holder = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const axis = useMemo(() => makeAxis(layout.columns.ids, layout.columns.physical_rows, "rows", []), [layout]);
  const at = layout.lanes.findIndex((lane) => lane.index.name === index);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    if (holder.current) observer.observe(holder.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const surface = canvas.current;
    const c = surface?.getContext("2d");
    const lane = layout.lanes[at];
    if (!surface || !c || !lane || width <= 0) return;
    const ratio = window.devicePixelRatio || 1;
    surface.width = Math.round(width * ratio);
    surface.height = Math.round(HEIGHT * ratio);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    const theme = readTheme(surface, false);
    const view = { from: 0, to: axis.total, width };
    drawLane(c, lane, axis, view, 0, HEIGHT, theme, makeFills(c, theme, ratio), fragmentsFit(axis, view), null);
    const scene = { layout, axis, view, boxes: [{ kind: "index" as const, lane: at, y: 0, height: HEIGHT }] };
    for (const ghost of ghosts) drawGhost(c, scene, ghost, theme);
  }, [layout, at, axis, width, ghosts]);
  return (
    <div ref={holder} aria-hidden="true" style={{ height: `${HEIGHT}px` }}>
      <canvas class="lane-strip" ref={canvas} style={{ width: `${width}px`, height: `${HEIGHT}px` }} />
    </div>
  );
}
