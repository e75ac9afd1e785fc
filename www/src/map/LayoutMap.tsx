// The layout map: lanes over one fragment axis, with zoom, pan, hover, selection, keys and a minimap.

import { select } from "d3-selection";
import { zoom, zoomIdentity } from "d3-zoom";
import type { D3ZoomEvent, ZoomBehavior } from "d3-zoom";
import type { JSX } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { name } from "../lib/format.js";
import type { Selection } from "../lib/url.js";
import { fragmentAt, makeAxis, positionOf, toAxis, toPixel, visible, zoomWindow, clampWindow } from "./axis.js";
import type { Axis, Viewport, Widths } from "./axis.js";
import type { GhostRun, Marks } from "./draw.js";
import { drawMap, drawMinimap, drawMinimapFrame } from "./draw.js";
import { laneAtY, laneBoxes, lanesHeight } from "./lanes.js";
import type { Groups } from "./groups.js";
import type { LaneBox } from "./lanes.js";
import type { Layout } from "./model.js";
import { makeFills, readTheme } from "./theme.js";
import type { Fills } from "./theme.js";
import { HoverCard } from "./HoverCard.js";

export interface LayoutMapProps {
  layout: Layout;
  groups: Groups | null;
  widths: Widths;
  showGroups: boolean;
  selection: Selection | null;
  /** Visible part as shares of the axis; null: all of it. */
  window: [number, number] | null;
  ghosts: GhostRun[];
  /** Rises when the colour scheme changes. */
  themeStamp: number;
  onSelect: (selection: Selection | null) => void;
  onWindow: (window: [number, number] | null) => void;
}

/** Pixels on either side of the line between two fragments that mean the line; a fragment narrower than four times that has none. */
const BORDER = 3;

/** Position of the fragment left of the line that `x` is at; -1 when it is at none. */
function nearBorder(view: Viewport, axis: Axis, i: number, x: number): number {
  const [a, b] = [toPixel(view, axis.starts[i]!), toPixel(view, axis.starts[i + 1]!)];
  if (b - a < BORDER * 4) return -1;
  if (x - a <= BORDER && i > 0) return i - 1;
  return b - x <= BORDER && i + 1 < axis.ids.length ? i : -1;
}

const MINIMAP_HEIGHT = 32;
/** Closest zoom: this many fragments of mean width fill the map. */
const CLOSEST = 2;

export function LayoutMap(props: LayoutMapProps): JSX.Element {
  const { layout, groups, widths, showGroups, selection, ghosts, onSelect, onWindow } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const mini = useRef<HTMLCanvasElement>(null);
  const holder = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [hover, setHover] = useState<{ i: number; border: number; x: number; y: number; lane: LaneBox | null } | null>(null);
  const axis = useMemo(() => makeAxis(layout.columns.ids, layout.columns.physical_rows, widths, layout.retired), [layout, widths]);
  const boxes = useMemo(() => laneBoxes(layout.lanes.length, showGroups), [layout, showGroups]);
  const height = lanesHeight(boxes);
  const smallest = Math.min(axis.total, (axis.total / Math.max(1, layout.columns.ids.length + layout.retired.length)) * CLOSEST);

  // The window lives outside the component state: a drag must not re-render the page for every frame.
  const shown = useRef<[number, number]>([0, axis.total]);
  const behaviour = useRef<ZoomBehavior<HTMLCanvasElement, unknown> | null>(null);
  const frame = useRef(0);
  const announce = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);

  const marks = useMemo((): Marks => {
    const found: Marks = { fragments: [], segment: null, lane: null, hover: -1, ghosts };
    if (selection?.kind === "fragment") found.fragments = [positionOf(axis.ids, selection.id)];
    if (selection?.kind === "pair") found.fragments = [positionOf(axis.ids, selection.a), positionOf(axis.ids, selection.b)];
    if (selection?.kind === "segment") found.segment = layout.byUuid.get(selection.uuid) ?? null;
    if (selection?.kind === "index") found.lane = layout.lanes.findIndex((lane) => lane.index.name === selection.name);
    return found;
  }, [selection, layout, axis, ghosts]);

  const paints = useRef<{ stamp: string; fills: Fills } | null>(null);
  const overview = useRef<{ layer: HTMLCanvasElement; layout: Layout; axis: Axis; stamp: string; width: number } | null>(null);
  const painter = useRef<() => void>(() => undefined);
  painter.current = () => {
    const surface = canvas.current;
    const context = surface?.getContext("2d");
    if (!surface || !context || width <= 0) return;
    const printing = window.matchMedia("print").matches;
    const theme = readTheme(surface, printing);
    const ratio = window.devicePixelRatio || 1;
    fit(surface, width, height, ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const stamp = `${props.themeStamp}/${ratio}/${printing}`;
    if (paints.current?.stamp !== stamp) paints.current = { stamp, fills: makeFills(context, theme, ratio) };
    const { fills } = paints.current;
    const view: Viewport = { from: shown.current[0], to: shown.current[1], width };
    drawMap(context, { layout, groups, axis, view, boxes, marks: { ...marks, hover: hover?.i ?? -1 } }, theme, fills, height);
    const small = mini.current;
    const smallContext = small?.getContext("2d");
    if (!small || !smallContext) return;
    fit(small, width, MINIMAP_HEIGHT, ratio);
    smallContext.setTransform(ratio, 0, 0, ratio, 0, 0);
    let whole = overview.current;
    if (!whole || whole.layout !== layout || whole.axis !== axis || whole.stamp !== stamp || whole.width !== width) {
      const layer = document.createElement("canvas");
      layer.width = small.width;
      layer.height = small.height;
      const c = layer.getContext("2d");
      c?.setTransform(ratio, 0, 0, ratio, 0, 0);
      if (c) drawMinimap(c, layout, axis, width, MINIMAP_HEIGHT, theme, fills);
      whole = { layer, layout, axis, stamp, width };
      overview.current = whole;
    }
    smallContext.clearRect(0, 0, width, MINIMAP_HEIGHT);
    smallContext.drawImage(whole.layer, 0, 0, width, MINIMAP_HEIGHT);
    drawMinimapFrame(smallContext, axis, width, MINIMAP_HEIGHT, shown.current, theme);
  };
  const paint = useCallback(() => {
    if (frame.current) return;
    frame.current = requestAnimationFrame(() => {
      frame.current = 0;
      painter.current();
    });
  }, []);

  const settle = useCallback(() => {
    clearTimeout(announce.current);
    announce.current = setTimeout(() => {
      const [from, to] = shown.current;
      const all = to - from >= axis.total * (1 - 1e-9);
      onWindow(all ? null : [from / axis.total, to / axis.total]);
    }, 180);
  }, [axis, onWindow]);

  /** Moves the view; the gesture handler is told, so that the next drag starts where we are. */
  const show = useCallback((from: number, to: number) => {
    const surface = canvas.current;
    if (!surface || !behaviour.current || width <= 0) return;
    const k = axis.total / (to - from);
    select(surface).call(behaviour.current.transform, zoomIdentity.translate((-from / axis.total) * width * k, 0).scale(k));
  }, [axis, width]);

  useLayoutEffect(() => {
    const element = holder.current;
    if (!element) return;
    const observer = new ResizeObserver(([entry]) => {
      if (entry) setWidth(Math.max(0, Math.floor(entry.contentRect.width)));
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const surface = canvas.current;
    if (!surface || width <= 0) return;
    const z = zoom<HTMLCanvasElement, unknown>()
      .filter((event: Event) => !(event instanceof MouseEvent && event.button !== 0) && !(event instanceof MouseEvent && event.shiftKey && event.type === "mousedown"))
      .scaleExtent([1, Math.max(1, axis.total / smallest)])
      .extent([[0, 0], [width, height]])
      .translateExtent([[0, -Infinity], [width, Infinity]])
      .clickDistance(4)
      .on("zoom", (event: D3ZoomEvent<HTMLCanvasElement, unknown>) => {
        const { k, x } = event.transform;
        const from = (-x / k / width) * axis.total;
        shown.current = clampWindow(axis.total, from, from + axis.total / k, smallest);
        paint();
        if (event.sourceEvent) settle();
      });
    behaviour.current = z;
    const target = select(surface);
    target.call(z).on("dblclick.zoom", null);
    const sideways = (event: WheelEvent) => {
      const delta = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
      if (Math.abs(delta) <= Math.abs(event.shiftKey ? 0 : event.deltaY)) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      const [from, to] = shown.current;
      const move = (delta / width) * (to - from);
      show(...clampWindow(axis.total, from + move, to + move, smallest));
      settle();
    };
    surface.addEventListener("wheel", sideways, { capture: true, passive: false });
    const [a, b] = props.window ?? [0, 1];
    show(...clampWindow(axis.total, a * axis.total, b * axis.total, smallest));
    return () => {
      surface.removeEventListener("wheel", sideways, { capture: true });
      target.on(".zoom", null);
    };
    // The address bar's window is applied when the axis changes, and by the effect below when somebody else moved it.
  }, [axis, width, height, smallest]);

  useEffect(() => {
    const [a, b] = props.window ?? [0, 1];
    const [from, to] = shown.current;
    const same = Math.abs(from - a * axis.total) + Math.abs(to - b * axis.total) < axis.total * 2e-6;
    if (!same) show(...clampWindow(axis.total, a * axis.total, b * axis.total, smallest));
  }, [props.window]);

  // What is chosen elsewhere (search, the list, the table) is brought into view.
  useEffect(() => {
    const ends = marks.segment ? segmentEnds(layout, marks.segment) : marks.fragments.filter((i) => i >= 0);
    if (ends.length === 0 || width <= 0) return;
    const a = axis.starts[Math.min(...ends)]!;
    const b = axis.starts[Math.max(...ends) + 1]!;
    const [from, to] = shown.current;
    if (b > from && a < to) return;
    const middle = (a + b) / 2;
    show(...clampWindow(axis.total, middle - (to - from) / 2, middle + (to - from) / 2, smallest));
    settle();
  }, [selection, axis, width]);

  useEffect(paint);
  useEffect(() => {
    const again = () => painter.current();
    const media = window.matchMedia("print");
    media.addEventListener("change", again);
    window.addEventListener("beforeprint", again);
    window.addEventListener("afterprint", again);
    return () => {
      media.removeEventListener("change", again);
      window.removeEventListener("beforeprint", again);
      window.removeEventListener("afterprint", again);
    };
  }, []);

  const locate = (event: MouseEvent) => {
    const surface = canvas.current;
    if (!surface) return null;
    const place = surface.getBoundingClientRect();
    const x = event.clientX - place.left;
    const y = event.clientY - place.top;
    const view: Viewport = { from: shown.current[0], to: shown.current[1], width };
    const i = fragmentAt(axis, toAxis(view, x));
    // Within a few pixels of the line between two fragments, while both are wide enough to be pointed at themselves.
    return { i, border: i < 0 ? -1 : nearBorder(view, axis, i, x), x, y, lane: laneAtY(boxes, y) };
  };

  const click = (event: MouseEvent) => {
    const place = locate(event);
    if (!place || place.i < 0) {
      onSelect(null);
      return;
    }
    const id = axis.ids[place.i]!;
    if (event.shiftKey && selection?.kind === "fragment" && selection.id !== id) {
      onSelect({ kind: "pair", a: Math.min(selection.id, id), b: Math.max(selection.id, id) });
      return;
    }
    if (place.lane?.kind === "index" && !event.shiftKey) {
      const lane = layout.lanes[place.lane.lane];
      const segment = lane?.segments[lane.cover[place.i]!];
      if (segment) {
        onSelect({ kind: "segment", uuid: segment.uuid.toLowerCase() });
        return;
      }
    }
    onSelect({ kind: "fragment", id });
  };

  const keys = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [from, to] = shown.current;
    const step = (to - from) * 0.2;
    const middle = (from + to) / 2;
    const move = (by: number) => clampWindow(axis.total, from + by, to + by, smallest);
    const actions: Record<string, () => [number, number] | null> = {
      ArrowLeft: () => move(-step), a: () => move(-step), ArrowRight: () => move(step), d: () => move(step),
      ArrowUp: () => zoomWindow(axis.total, from, to, 1.6, middle, smallest), w: () => zoomWindow(axis.total, from, to, 1.6, middle, smallest),
      ArrowDown: () => zoomWindow(axis.total, from, to, 1 / 1.6, middle, smallest), s: () => zoomWindow(axis.total, from, to, 1 / 1.6, middle, smallest),
      "0": () => [0, axis.total],
      n: () => walk(1), p: () => walk(-1),
    };
    const walk = (by: number): [number, number] | null => {
      const n = axis.ids.length;
      if (n === 0) return null;
      const view: Viewport = { from, to, width };
      const now = selection?.kind === "fragment" ? positionOf(axis.ids, selection.id) : -1;
      const next = now < 0 ? visible(axis, view)[0] : Math.min(n - 1, Math.max(0, now + by));
      onSelect({ kind: "fragment", id: axis.ids[next]! });
      const a = axis.starts[next]!;
      const b = axis.starts[next + 1]!;
      if (a >= from && b <= to) return null;
      return clampWindow(axis.total, (a + b) / 2 - (to - from) / 2, (a + b) / 2 + (to - from) / 2, smallest);
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    const next = action();
    if (next) {
      show(...next);
      settle();
    }
  };

  const dragMinimap = (event: PointerEvent) => {
    const element = mini.current;
    if (!element || (event.type === "pointermove" && event.buttons !== 1)) return;
    if (event.type === "pointerdown") element.setPointerCapture(event.pointerId);
    const place = element.getBoundingClientRect();
    const at = ((event.clientX - place.left) / place.width) * axis.total;
    const [from, to] = shown.current;
    const length = to - from;
    show(...clampWindow(axis.total, at - length / 2, at + length / 2, smallest));
    settle();
  };

  return (
    <div class="map">
      <div class="map-labels" aria-hidden="true" style={{ height: `${height}px` }}>
        {boxes.map((box) => (
          <div key={`${box.kind}${box.lane}`} class={`map-label map-label-${box.kind}${marks.lane === box.lane && box.kind === "index" ? " is-marked" : ""}`} style={{ top: `${box.y}px`, height: `${box.height}px` }}>
            {box.kind === "index"
              ? <button type="button" tabIndex={-1} title={layout.lanes[box.lane]?.index.name} onClick={() => onSelect({ kind: "index", name: layout.lanes[box.lane]!.index.name })}><span>{name(layout.lanes[box.lane]!.index.name)}</span></button>
              : <span title={LABEL_TITLES[box.kind]}>{LABELS[box.kind]}</span>}
          </div>
        ))}
      </div>
      <div class="map-canvas" ref={holder} style={{ height: `${height}px` }}>
        <canvas
          ref={canvas}
          tabIndex={0}
          role="img"
          aria-label={`Layout map of ${layout.columns.ids.length} fragments and ${layout.lanes.length} indexes. Arrow keys pan and zoom, 0 fits, N and P walk the fragments. The table view has the same data.`}
          onClick={click}
          onKeyDown={keys}
          onMouseMove={(event) => setHover(locate(event))}
          onMouseLeave={() => setHover(null)}
        />
        {hover && hover.i >= 0 && <HoverCard layout={layout} groups={groups} i={hover.border >= 0 ? hover.border : hover.i} lane={hover.lane?.kind === "index" ? hover.lane.lane : -1} border={hover.border >= 0} x={hover.x} y={hover.y} width={width} />}
      </div>
      <div class="map-mini-label" aria-hidden="true">whole table</div>
      <canvas class="map-mini" ref={mini} style={{ height: `${MINIMAP_HEIGHT}px` }} aria-hidden="true" onPointerDown={dragMinimap} onPointerMove={dragMinimap} />
    </div>
  );
}

function segmentEnds(layout: Layout, { lane, segment }: { lane: number; segment: number }): number[] {
  const found = layout.lanes[lane]?.segments[segment];
  return found && found.first >= 0 ? [found.first, found.last] : [];
}

const LABELS = { rows: "rows", deleted: "deleted", groups: "groups", axis: "fragment" };
const LABEL_TITLES = {
  rows: "Rows of each fragment; the dark foot is the deleted part",
  deleted: "Share of deleted rows",
  groups: "What OPTIMIZE would merge, with the table's own options. A cross is a small fragment whose small neighbours lie in other segments: it stays as it is",
  axis: "Fragment ids",
};

function fit(surface: HTMLCanvasElement, width: number, height: number, ratio: number): void {
  const w = Math.round(width * ratio);
  const h = Math.round(height * ratio);
  if (surface.width !== w) surface.width = w;
  if (surface.height !== h) surface.height = h;
  surface.style.width = `${width}px`;
  surface.style.height = `${height}px`;
}
