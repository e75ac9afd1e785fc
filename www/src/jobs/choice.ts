// What a dialog asks the engine to plan, and the words around it. Pure.

import type { BuildPlan, FieldInfo, Plan } from "../engine/documents.js";
import { commandTarget, name, plural, shellWord } from "../lib/format.js";
import { withoutSecrets } from "../lib/url.js";

/** One thing to plan, with everything the person chose. */
export type Choice =
  | { kind: "refresh"; index: string; segments: number; absorb: boolean }
  | { kind: "merge"; index: string; segments: number }
  | { kind: "create"; index: string; column: string; method: string; segments: number; train: boolean; params: Params }
  | { kind: "drop"; index: string };

export type JobKind = Choice["kind"];

/** A dialog that is open: on an index, or on a column that has none yet. */
export type Job = { kind: "refresh" | "merge" | "drop"; index: string } | { kind: "create" };

export function startChoice(job: Job, segments: number): Choice {
  switch (job.kind) {
    case "refresh": return { kind: "refresh", index: job.index, segments, absorb: false };
    case "merge": return { kind: "merge", index: job.index, segments: 1 };
    case "drop": return { kind: "drop", index: job.index };
    case "create": return { kind: "create", index: "", column: "", method: "BTREE", segments: 1, train: true, params: {} };
  }
}

/** Whether there is enough to plan with; a half-filled form is not an error. */
export function complete(choice: Choice): boolean {
  return choice.kind !== "create" || (choice.index.trim() !== "" && choice.column !== "");
}

/** Two choices with the same key have the same plan. */
export function choiceKey(choice: Choice): string {
  return JSON.stringify(choice);
}

export const TITLES: Record<JobKind, Record<"choosing" | "running" | "reported" | "failed", string>> = {
  refresh: { choosing: "Refresh", running: "Refreshing", reported: "Refreshed", failed: "Refresh of" },
  merge: { choosing: "Merge segments of", running: "Merging segments of", reported: "Merged segments of", failed: "Merge of" },
  create: { choosing: "Create an index", running: "Creating", reported: "Created", failed: "Creating" },
  drop: { choosing: "Drop", running: "Dropping", reported: "Dropped", failed: "Drop of" },
};

export function isBuild(plan: Plan): plan is BuildPlan {
  return plan.kind !== "drop_index";
}

/** Whether running the plan would write no version. */
export function nothingToDo(plan: Plan): boolean {
  return isBuild(plan) && plan.kind !== "create_index" && plan.tasks.length === 0;
}

/** What the button says: the effect, in numbers. */
export function effect(plan: Plan): string {
  if (!isBuild(plan)) return `Drop ${name(plan.index.name)}`;
  const fragments = plan.tasks.reduce((sum, task) => sum + task.fragments.length, 0);
  if (plan.kind === "create_index") {
    if (!plan.create.train || plan.tasks.length === 0) return "Create the index, empty";
    return `Create: index ${plural(fragments, "fragment")} in ${plural(plan.tasks.length, "segment")}`;
  }
  if (plan.tasks.length === 0) return plan.kind === "merge" ? "Nothing to merge" : "Nothing to index";
  if (plan.kind === "merge") {
    const old = plan.segments.filter((segment) => segment.fate !== "KEPT").length;
    return `Merge ${plural(old, "segment")} into ${plan.tasks.length}`;
  }
  return `Index ${plural(fragments, "fragment")} in ${plural(plan.tasks.length, "segment")}`;
}

/** The command line that does the same. */
export function commandLine(plan: Plan, target: string): string {
  const table = commandTarget(withoutSecrets(target));
  const index = shellWord(plan.index.name);
  if (!isBuild(plan)) return `whetstone drop-index ${table} ${index}`;
  const segments = Math.max(1, plan.runs.length);
  if (plan.kind === "create_index") {
    const given = plan.index.params_from === "options" ? Object.entries(plan.index.params) : [];
    const params = given.map(([key, value]) => ` --param ${shellWord(`${key}=${typeof value === "string" ? value : JSON.stringify(value)}`)}`).join("");
    const how = plan.create.train ? `--num-segments ${segments}` : "--deferred";
    return `whetstone create-index ${table} ${index} ${shellWord(plan.index.column)} ${plan.index.method} ${how}${params}${plan.create.replace ? " --replace" : ""}`;
  }
  return `whetstone ${plan.kind} ${table} ${index} --num-segments ${segments}`;
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
