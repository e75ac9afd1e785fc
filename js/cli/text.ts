// Plain text for people: aligned columns, exact numbers with thin spaces, sizes in units of 1000.

/** A column of a table. */
export interface Column<T> {
  head: string;
  cell(row: T): string;
  right?: boolean;
}

const segmenter = new Intl.Segmenter();
const width = (text: string): number => [...segmenter.segment(text)].length;

/** A name, cut where it would push everything else off the screen. */
export function name(text: string, most = 48): string {
  if (text.length <= most) return text;
  const letters = [...segmenter.segment(text.slice(0, most * 8))].map((one) => one.segment);
  return letters.length <= most && text.length <= most * 8 ? text : `${letters.slice(0, most - 1).join("")}…`;
}

/** An aligned table; the last column is not padded. */
export function table<T>(rows: readonly T[], columns: readonly Column<T>[]): string {
  const cells = [columns.map((column) => column.head), ...rows.map((row) => columns.map((column) => column.cell(row)))];
  const widths = columns.map((_, i) => Math.max(...cells.map((line) => width(line[i] ?? ""))));
  return cells.map((line) => line.map((cell, i) => {
    const gap = " ".repeat(Math.max(0, (widths[i] ?? 0) - width(cell)));
    return columns[i]?.right ? gap + cell : cell + gap;
  }).join("   ").trimEnd()).join("\n");
}

/** Pairs, one a line. */
export function pairs(entries: readonly (readonly [string, string])[]): string {
  const widest = Math.max(...entries.map(([name]) => width(name)));
  return entries.map(([name, value]) => `${name}${" ".repeat(widest - width(name))}   ${value}`).join("\n");
}

// What moves the cursor, starts an escape sequence, breaks the line or turns the direction of writing.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The same document with no character in any text that a terminal obeys: names come from tables, and tables from anybody. */
export function printable<T>(value: T): T {
  const map = (one: unknown): unknown => {
    if (typeof one === "string") return one.replace(CONTROLS, (c) => `\\u{${c.charCodeAt(0).toString(16)}}`);
    if (Array.isArray(one)) return one.map(map);
    if (typeof one !== "object" || one === null) return one;
    return Object.fromEntries(Object.entries(one).map(([key, inner]) => [map(key), map(inner)]));
  };
  return map(value) as T;
}

/** Lines of JSON with the same characters escaped, so that they stay JSON. */
export function printableLines(lines: string): string {
  return lines.replace(CONTROLS, (c) => (c === "\n" ? c : `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`));
}

const UNKNOWN = "unknown";

export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN;
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u2009");
}

export function size(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return UNKNOWN;
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.floor(value) : Math.floor(value * 10) / 10} ${units[unit]}`;
}

/** Cut, never rounded up: 99.999 is not 100. */
export function percent(value: number | null, known: boolean): string {
  if (value === null) return "–";
  return `${known ? "" : "at least "}${(Math.floor(value * 100 + 1e-6) / 100).toFixed(2)} %`;
}

/** Whole numbers with their runs drawn together: 0–3, 7. */
export function ranges(ids: readonly number[] | null): string {
  if (ids === null) return UNKNOWN;
  if (ids.length === 0) return "none";
  const runs: string[] = [];
  const shown = 12;
  for (let i = 0; i < ids.length;) {
    let end = i;
    while (ids[end + 1] === (ids[end] ?? 0) + 1) end += 1;
    runs.push(end === i ? `${ids[i]}` : `${ids[i]}–${ids[end]}`);
    i = end + 1;
  }
  return runs.length <= shown ? runs.join(", ") : `${runs.slice(0, shown).join(", ")}, and ${runs.length - shown} more runs`;
}

/** `3 fragments`, `1 fragment`. */
export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}
