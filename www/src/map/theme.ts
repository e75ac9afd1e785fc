// Colours the canvas needs, read from the style sheet so that both always agree; and the patterns that carry meaning without colour.

import { HUES, SEGMENT_COLOURS, SEGMENT_EDGES, SLOTS } from "./palette.js";

export interface MapTheme {
  ground: string;
  ink: string;
  muted: string;
  line: string;
  rows: string;
  deleted: string;
  hatch: string;
  hatchGround: string;
  accent: string;
  /** In print, segments are told apart by pattern. */
  print: boolean;
  font: string;
}

export function readTheme(element: Element, print: boolean): MapTheme {
  const style = getComputedStyle(element);
  const value = (name: string) => style.getPropertyValue(name).trim();
  if (print) {
    return {
      ground: "#fff", ink: "#000", muted: "#333", line: "#999", rows: "#888", deleted: "#000", hatch: "#000", hatchGround: "#fff", accent: "#000", print,
      font: style.fontFamily,
    };
  }
  return {
    ground: value("--surface"), ink: value("--ink"), muted: value("--muted"), line: value("--line"), rows: value("--map-rows"),
    deleted: value("--map-deleted"), hatch: value("--map-hatch"), hatchGround: value("--map-hatch-ground"), accent: value("--accent"), print,
    font: style.fontFamily,
  };
}

type Fill = string | CanvasPattern;

export interface Fills {
  segment: (slot: number) => Fill;
  edge: (slot: number) => string;
  /** Text on a segment. */
  text: (slot: number) => string;
  hatch: Fill;
  dots: Fill;
}

export function makeFills(context: CanvasRenderingContext2D, theme: MapTheme, ratio: number): Fills {
  const tile = (size: number, paint: (c: CanvasRenderingContext2D) => void): Fill => {
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(size * ratio);
    canvas.height = Math.round(size * ratio);
    const c = canvas.getContext("2d");
    if (!c) return theme.hatch;
    c.scale(canvas.width / size, canvas.height / size);
    paint(c);
    const pattern = context.createPattern(canvas, "repeat");
    pattern?.setTransform(new DOMMatrix().scale(size / canvas.width, size / canvas.height));
    return pattern ?? theme.hatch;
  };
  const strokes = (size: number, width: number, ink: string, ground: string, lines: [number, number, number, number][]): Fill =>
    tile(size, (c) => {
      c.fillStyle = ground;
      c.fillRect(0, 0, size, size);
      c.strokeStyle = ink;
      c.lineWidth = width;
      c.lineCap = "square";
      c.beginPath();
      for (const [x0, y0, x1, y1] of lines) {
        c.moveTo(x0, y0);
        c.lineTo(x1, y1);
      }
      c.stroke();
    });
  // A 45° line and its continuations in the corners, so that tiles join.
  const diagonal = (s: number): [number, number, number, number][] => [[0, s, s, 0], [-1, 1, 1, -1], [s - 1, s + 1, s + 1, s - 1]];
  const hatch = strokes(6, 1.3, theme.hatch, theme.hatchGround, diagonal(6));
  const dots = tile(5, (c) => {
    c.fillStyle = theme.hatchGround;
    c.fillRect(0, 0, 5, 5);
    c.fillStyle = theme.muted;
    c.beginPath();
    c.arc(2.5, 2.5, 1, 0, Math.PI * 2);
    c.fill();
  });
  if (!theme.print) {
    return {
      segment: (slot) => SEGMENT_COLOURS[slot % SLOTS]!, edge: (slot) => SEGMENT_EDGES[slot % SLOTS]!, text: (slot) => readable(SEGMENT_COLOURS[slot % SLOTS]!),
      hatch, dots,
    };
  }
  const greys = ["#444", "#ccc", "#777", "#eee", "#999", "#ddd", "#666", "#bbb"];
  const printed = Array.from({ length: SLOTS }, (_, slot): Fill => {
    const grey = greys[slot % HUES]!;
    if (slot < HUES) return grey;
    return strokes(6, 1, "#000", grey === "#444" ? "#aaa" : grey, slot % 2 === 0 ? [[0, 3, 6, 3]] : [[3, 0, 3, 6]]);
  });
  return { segment: (slot) => printed[slot % SLOTS]!, edge: () => "#000", text: () => "#000", hatch, dots };
}

/** Relative luminance of a #rrggbb colour (WCAG). */
export function luminance(hex: string): number {
  const part = (at: number) => {
    const c = parseInt(hex.slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

/** Black or white, whichever contrasts more with a ground. */
export function readable(ground: string): string {
  const l = luminance(ground);
  return (1.05) / (l + 0.05) > (l + 0.05) / 0.0553 ? "#ffffff" : "#0d1216";
}
