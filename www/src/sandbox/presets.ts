// What a new table can be made of, and the limits that are said before the engine says them. Pure.

import type { RowChoice, SandboxColumn } from "../engine/documents.js";

export const TYPES = ["int64", "int32", "float64", "bool", "utf8", "timestamp", "date32", "labels"] as const;

/** Shapes that fit a type; the first is where to begin. */
export function shapesFor(type: string): NonNullable<SandboxColumn["shape"]>[] {
  if (type === "labels") return ["words"];
  if (type === "utf8") return ["words", "sentences", "choice", "sequence", "random"];
  return ["sequence", "random", "choice"];
}

export const PRESETS: readonly { name: string; columns: SandboxColumn[] }[] = [
  {
    name: "orders",
    columns: [
      { name: "id", type: "int64", nullable: false, shape: "sequence" },
      { name: "user_id", type: "int32", shape: "random", max: 5000 },
      { name: "price", type: "float64", shape: "random", max: 500, nulls: 0.02 },
      { name: "city", type: "utf8", shape: "choice", distinct: 12 },
      { name: "at", type: "timestamp", shape: "sequence" },
    ],
  },
  {
    name: "articles",
    columns: [
      { name: "id", type: "int64", nullable: false, shape: "sequence" },
      { name: "title", type: "utf8", shape: "sentences", words: [2, 6] },
      { name: "body", type: "utf8", shape: "sentences", words: [12, 40] },
      { name: "tags", type: "labels", shape: "words", distinct: 20 },
      { name: "day", type: "date32", shape: "sequence" },
    ],
  },
];

export const MOST_ROWS = 2_000_000;

/** A whole number from a field; null where it is none or out of bounds. */
export function wholeIn(text: string, least: number, most: number): number | null {
  const clean = text.replace(/[\s_,\u00a0\u202f]/g, "");
  if (!/^\d{1,9}$/.test(clean)) return null;
  const number = Number(clean);
  return number >= least && number <= most ? number : null;
}

/** A name that a sandbox table can have. */
export function tableNameFault(name: string, taken: readonly string[]): string | null {
  if (name === "") return null;
  if (!/^[\w-]{1,40}$/.test(name)) return "1 to 40 letters, digits and dashes";
  return taken.includes(name) ? "There is a table of that name: it is made anew, and what it holds is lost." : null;
}

/** Which rows a person means by a condition and "every n-th". */
export function choiceOf(where: string, every: number): RowChoice {
  return { where: where.trim(), ...(every > 1 ? { every } : {}) };
}

/** "city = 'harbor', price = 3" as new values; null where a part is no assignment. */
export function parseSet(text: string): Record<string, string | number | boolean | null> | null {
  const found: Record<string, string | number | boolean | null> = {};
  const part = /\s*([\p{L}_][\p{L}\p{N}_]*)\s*=\s*(?:'((?:[^']|'')*)'|(-?\d+(?:\.\d+)?)|(true|false)|(null))\s*(,|$)/iuy;
  while (part.lastIndex < text.length) {
    const match = part.exec(text);
    if (!match) return null;
    const [, name = "", quoted, number, flag] = match;
    found[name] = quoted !== undefined ? quoted.replaceAll("''", "'") : number !== undefined ? Number(number) : flag !== undefined ? flag.toLowerCase() === "true" : null;
  }
  return Object.keys(found).length > 0 ? found : null;
}
