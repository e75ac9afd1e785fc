// What a dialog asks the engine to plan. Pure.

import type { CompactionOptions, ErrorDocument, FieldInfo } from "../engine/documents.js";

/** One thing to plan, with everything the person chose. */
export type Choice =
  | { kind: "refresh"; index: string; segments: number; absorb: boolean }
  | { kind: "merge"; index: string; segments: number }
  | { kind: "create"; index: string; column: string; method: string; segments: number; train: boolean; params: Params }
  | { kind: "drop"; index: string }
  /** Options that are not given are the table's own, else Lance's. `fault`: a field holds something that is no number. */
  | { kind: "compact"; options: CompactionOptions; fault: boolean }
  | { kind: "trim" }
  | { kind: "prune" }
  /** `days`: age a row map must have. */
  | { kind: "gc"; days: number }
  /** `days`: age a leftover must have. */
  | { kind: "orphans"; days: number }
  /** What the job staged that failed with this. */
  | { kind: "discard"; failure: ErrorDocument };

export type JobKind = Choice["kind"];

/** Jobs on the whole table whose dialog needs nothing to begin with. */
export const UPKEEP = ["trim", "prune", "gc", "orphans"] as const;
/** Row maps younger than that are never removed, in days: a commit may be on its way that names them. Where leftovers begin, too. */
export const LEAST_DAYS = 7;

/** A dialog that is open: on an index, on a column that has none yet, or on the table. */
export type Job =
  | { kind: "refresh" | "merge" | "drop"; index: string }
  | { kind: "create" }
  /** `rows`: those a fragment should have; `null`: as the table is configured. */
  | { kind: "compact"; rows: number | null }
  | { kind: (typeof UPKEEP)[number] };

export function startChoice(job: Job, segments: number): Choice {
  switch (job.kind) {
    case "refresh": return { kind: "refresh", index: job.index, segments, absorb: false };
    case "merge": return { kind: "merge", index: job.index, segments: 1 };
    case "drop": return { kind: "drop", index: job.index };
    case "create": return { kind: "create", index: "", column: "", method: "BTREE", segments: 1, train: true, params: {} };
    case "compact": return { kind: "compact", options: job.rows === null ? {} : { target_rows_per_fragment: job.rows }, fault: false };
    case "gc": case "orphans": return { kind: job.kind, days: LEAST_DAYS };
    default: return { kind: job.kind };
  }
}

/** Whether there is enough to plan with; a half-filled form is not an error. */
export function complete(choice: Choice): boolean {
  if (choice.kind === "compact") return !choice.fault;
  return choice.kind !== "create" || (choice.index.trim() !== "" && choice.column !== "");
}

/** Two choices with the same key have the same plan. */
export function choiceKey(choice: Choice): string {
  return JSON.stringify(choice);
}

/** "12 000" or "12_000" as a whole number of at least `least`; `undefined` for nothing typed, `null` for what is none. */
export function typedNumber(text: string, least: number): number | null | undefined {
  const digits = text.replaceAll(/[\s_]/g, "");
  if (digits === "") return undefined;
  const value = /^\d{1,15}$/.test(digits) ? Number(digits) : Number.NaN;
  return value >= least ? value : null;
}

/** "3, 5-8" as ids, ascending and each once; `undefined` for nothing typed, `null` for what are none. */
export function typedIds(text: string, most = 100_000): number[] | null | undefined {
  const found = new Set<number>();
  const parts = text.split(/[\s,]+/).filter((part) => part !== "");
  for (const part of parts) {
    const ends = /^(\d{1,10})(?:[-–](\d{1,10}))?$/.exec(part);
    const [first, last] = ends ? [Number(ends[1]), Number(ends[2] ?? ends[1])] : [1, 0];
    if (last < first || last > 0xffff_ffff || last - first + found.size >= most) return null;
    for (let id = first; id <= last; id += 1) found.add(id);
  }
  return parts.length === 0 ? undefined : [...found].sort((a, b) => a - b);
}

/** Columns an index can be made on, as dotted paths: leaves, and lists of leaves. */
export function columnsOf(schema: readonly FieldInfo[]): { path: string; type: string }[] {
  const found: { path: string; type: string }[] = [];
  const walk = (fields: readonly FieldInfo[], prefix: string) => {
    for (const field of fields) {
      const path = prefix + quoted(field.name);
      const list = /list/.test(field.type);
      if (field.children.length === 0 || list) found.push({ path, type: list ? `list of ${field.children[0]?.type ?? "?"}` : field.type });
      else walk(field.children, `${path}.`);
    }
  };
  walk(schema, "");
  return found;
}

/** A name with a dot in it is written in backquotes, or the dot would be taken for a path's. */
function quoted(field: string): string {
  return /[.`]/.test(field) ? `\`${field.replaceAll("`", "``")}\`` : field;
}

/** Methods with what they are for; the engine says which columns each takes. */
export const METHODS: readonly { method: string; meant: string }[] = [
  { method: "BTREE", meant: "equality, ranges and sorting of any scalar" },
  { method: "BITMAP", meant: "few distinct values" },
  { method: "ZONEMAP", meant: "ranges over values that follow the order of rows; tiny" },
  { method: "BLOOMFILTER", meant: "equality over many values; tiny, may read too much" },
  { method: "LABEL_LIST", meant: "lists of labels: has any, has all" },
  { method: "NGRAM", meant: "substrings of text" },
  { method: "INVERTED", meant: "full-text search" },
];

/** Methods worth offering for a column; the first is the one to begin with. */
export function methodsFor(type: string): string[] {
  if (type.startsWith("list of")) return ["LABEL_LIST", ...(/string|utf8/.test(type) ? ["INVERTED"] : [])];
  const text = /^(large_)?string|utf8/.test(type);
  return ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER", ...(text ? ["NGRAM", "INVERTED"] : [])];
}

export type Params = Record<string, string | number | boolean>;

/** "a=1, b = x" as parameters, numbers and booleans as such; null where a part has no "=". */
export function parseParams(text: string): Params | null {
  const found: Params = {};
  for (const part of text.split(/[,\n]/)) {
    if (part.trim() === "") continue;
    const cut = part.indexOf("=");
    if (cut <= 0) return null;
    const value = part.slice(cut + 1).trim();
    found[part.slice(0, cut).trim()] = value === "true" || value === "false" ? value === "true" : /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value;
  }
  return found;
}
