// The pages, zones, keys and tokens of a segment as pictures and cells. Pure.

import type { SegmentParts } from "../engine/documents.js";

/** A value as text; nulls are said, not left empty. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") return value === "" ? "“”" : value;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/**
 * Where values stand between the least (0) and the greatest (1): numbers by what they are, text by its order. Whole numbers past 2^53
 * come as text and are placed as closely as a picture needs.
 */
export function scaleOf(values: readonly unknown[]): (value: unknown) => number {
  const known = values.filter((value) => value !== null && value !== undefined);
  const numbers = known.map(asNumber);
  if (known.length > 0 && numbers.every((value) => value !== null)) {
    // Halves, so that the whole range of 64 bits floats does not become infinite.
    const least = Math.min(...(numbers as number[])) / 2;
    const span = Math.max(...(numbers as number[])) / 2 - least;
    return (value) => (span > 0 ? ((asNumber(value) ?? 0) / 2 - least) / span : 0.5);
  }
  const order = [...new Set(known.map(valueText))].sort();
  const rank = new Map(order.map((text, i) => [text, order.length > 1 ? i / (order.length - 1) : 0.5]));
  return (value) => rank.get(valueText(value)) ?? 0;
}

function asNumber(value: unknown): number | null {
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value !== "string" || !/^-?\d+(\.\d+)?$/.test(value)) return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

/** One page or zone of a picture: from and to are shares of the range of values, `heat` how little it can leave out. */
export interface Span {
  from: number;
  to: number;
  /** 0: leaves out nearly everything; 1: leaves out nothing. */
  heat: number;
  title: string;
}

/** The bounds of pages, in their order. A page of nulls alone has none. */
export function pageSpans(parts: SegmentParts & { kind: "pages" }): (Span | null)[] {
  const scale = scaleOf(parts.items.flatMap(({ min, max }) => [min, max]));
  return parts.items.map(({ page, rows, min, max, nulls }, i) => {
    if (max === null) return null;
    // Nulls come first: a page that begins with some begins where the page before it ended.
    const start = min ?? parts.items[i - 1]?.max ?? null;
    const from = start === null ? 0 : scale(start);
    const to = scale(max);
    return { from, to, heat: to - from, title: `page ${page}: ${valueText(min)} … ${valueText(max)}${rows === null ? "" : `, ${rows} rows`}${nulls > 0 ? `, ${nulls} nulls` : ""}` };
  });
}

export interface HeatRow {
  fragment: number;
  zones: Span[];
}

/** Zones fragment by fragment: how much of the values a zone spans, or how full its filter is. */
export function heatRows(parts: SegmentParts & { kind: "zones" }): HeatRow[] {
  const scale = scaleOf(parts.items.flatMap((zone) => ("min" in zone ? [zone.min, zone.max] : [])));
  const rows: HeatRow[] = [];
  for (const zone of parts.items) {
    let row = rows[rows.length - 1];
    if (row?.fragment !== zone.fragment) rows.push(row = { fragment: zone.fragment, zones: [] });
    const place = `rows ${zone.start} to ${zone.start + zone.length - 1}`;
    if ("min" in zone) {
      const none = zone.min === null && zone.max === null;
      const [from, to] = none ? [0, 0] : [scale(zone.min), scale(zone.max)];
      row.zones.push({ from, to, heat: none ? 0 : to - from, title: `${place}: ${none ? "only nulls" : `${valueText(zone.min)} … ${valueText(zone.max)}`}${zone.nulls > 0 ? `, ${zone.nulls} nulls` : ""}${zone.nans > 0 ? `, ${zone.nans} NaN` : ""}` });
    } else {
      row.zones.push({ from: 0, to: 1, heat: zone.fill ?? 1, title: `${place}: ${zone.fill === null ? "fill unknown" : `${(zone.fill * 100).toPrecision(3)} % of the bits set`}, a value that is absent passes with ${(zone.false_positive_estimate * 100).toPrecision(3)} %` });
    }
  }
  return rows;
}

/** How many keys have how many rows, by powers of two: what the index is made of. */
export function cardinalities(counts: readonly number[]): { label: string; keys: number }[] {
  const found: number[] = [];
  for (const rows of counts) {
    const step = rows < 1 ? 0 : Math.floor(Math.log2(rows)) + 1;
    found[step] = (found[step] ?? 0) + 1;
  }
  const list: { label: string; keys: number }[] = [];
  for (let step = 0; step < found.length; step += 1) {
    if (step === 0 && !found[0]) continue;
    const [low, high] = step === 0 ? [0, 0] : [2 ** (step - 1), 2 ** step - 1];
    list.push({ label: low === high ? `${low}` : `${low}–${high}`, keys: found[step] ?? 0 });
  }
  // Empty steps before the first key say nothing.
  const first = list.findIndex(({ keys }) => keys > 0);
  return first < 0 ? [] : list.slice(first);
}

export const HEADS: Record<SegmentParts["kind"], readonly string[]> = {
  pages: ["page", "rows", "min", "max", "nulls"],
  zones: ["fragment", "start", "length", "min", "max", "nulls", "nans", "filter_bytes", "fill", "false_positive_estimate"],
  keys: ["key", "rows", "bytes"],
  tokens: ["partition", "token", "documents", "bytes"],
};

/** The columns that the items have. */
export function headsOf(parts: Pick<SegmentParts, "kind"> & { items: readonly object[] }): string[] {
  return HEADS[parts.kind].filter((head) => head in (parts.items[0] ?? {}));
}
