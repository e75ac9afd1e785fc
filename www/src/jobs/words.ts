// The words around a job: the title of its dialog, what its button says, why it cannot be run, the command line that does the same. Pure.

import type { BuildPlan, CompactionPlan, DiscardPlan, GcPlan, JobPlan, Orphan, OrphanList, RemovalPlan, SkipRule, TrimPlan } from "../engine/documents.js";
import { bytes, commandTarget, count, name, plural, shellWord } from "../lib/format.js";
import { withoutSecrets } from "../lib/url.js";
import type { JobKind } from "./choice.js";

export const TITLES: Record<JobKind, Record<"choosing" | "running" | "reported" | "failed", string>> = {
  refresh: { choosing: "Refresh", running: "Refreshing", reported: "Refreshed", failed: "Refresh of" },
  merge: { choosing: "Merge segments of", running: "Merging segments of", reported: "Merged segments of", failed: "Merge of" },
  create: { choosing: "Create an index", running: "Creating", reported: "Created", failed: "Creating" },
  drop: { choosing: "Drop", running: "Dropping", reported: "Dropped", failed: "Drop of" },
  compact: { choosing: "Compact", running: "Compacting", reported: "Compacted", failed: "Compaction of" },
  trim: { choosing: "Trim the reuse history of", running: "Trimming the reuse history of", reported: "Trimmed the reuse history of", failed: "Trim of the reuse history of" },
  prune: { choosing: "Prune segments of", running: "Pruning segments of", reported: "Pruned segments of", failed: "Prune of" },
  gc: { choosing: "Collect row maps of", running: "Collecting row maps of", reported: "Collected row maps of", failed: "Collection of row maps of" },
  orphans: { choosing: "Leftovers of", running: "Removing leftovers of", reported: "Removed leftovers of", failed: "Removal of leftovers of" },
  discard: { choosing: "Remove what was staged in", running: "Removing what was staged in", reported: "Removed what was staged in", failed: "Removal of what was staged in" },
};

/** Jobs that take something away for good. */
export function isDangerous(kind: JobKind): boolean {
  return kind === "drop" || kind === "gc" || kind === "orphans" || kind === "discard";
}

/** Plans that remove files and write no version. */
export function isRemoval(plan: JobPlan): plan is GcPlan | RemovalPlan {
  return plan.kind === "gc" || plan.kind === "orphans" || plan.kind === "discard";
}

/** Whether segments are built before the commit. */
export function isBuild(plan: JobPlan): plan is BuildPlan {
  return plan.kind === "refresh" || plan.kind === "create_index" || plan.kind === "merge";
}

/** Work that workers do before anything is committed. */
export function tasksOf(plan: JobPlan): readonly { fragments: number[]; rows: number }[] {
  return "tasks" in plan ? plan.tasks : [];
}

/** Whether running the plan would change nothing. */
export function nothingToDo(plan: JobPlan): boolean {
  switch (plan.kind) {
    case "refresh": case "merge": case "compaction": return plan.tasks.length === 0;
    case "create_index": case "drop_index": return false;
    case "trim": return plan.outcome === "nothing" && plan.prune.length === 0;
    case "prune": return plan.segments.length === 0;
    case "gc": return agedMaps(plan).length === 0;
    case "orphans": return removable(plan).length === 0;
    case "discard": return stagedFiles(plan).files === 0;
  }
}

/** Why this build refuses to run a plan that it could make; `null` when it runs it. */
export function cannotRun(plan: JobPlan): string | null {
  if (plan.kind === "compaction") return plan.warnings.find((warning) => warning.rule === "cannot_run")?.evidence ?? null;
  return plan.kind === "gc" ? plan.disabled : null;
}

/** What the button says: the effect, in numbers. */
export function effect(plan: JobPlan): string {
  const cannot = cannotRun(plan) !== null;
  switch (plan.kind) {
    case "drop_index": return `Drop ${name(plan.index.name)}`;
    case "compaction": return plan.tasks.length === 0 ? "Nothing to compact" : cannot ? "Cannot be run here" : compactionEffect(plan);
    case "trim": return trimEffect(plan);
    case "prune": return plan.segments.length === 0 ? "Nothing to prune" : `Drop ${plural(plan.segments.length, "superseded segment")}`;
    case "gc": return cannot ? "Nothing can be deleted" : gcEffect(plan);
    case "orphans": return orphansEffect(plan);
    case "discard": {
      const { files, bytes: size } = stagedFiles(plan);
      return files === 0 ? "Nothing is left" : `Remove ${plural(files, "staged file")}, ${bytes(size)}`;
    }
  }
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

/** Fragments that a compaction takes away and writes. */
export function rewritten(plan: CompactionPlan): { before: number; after: number; deleted: number } {
  return plan.tasks.reduce((sum, task) => ({ before: sum.before + task.fragments.length, after: sum.after + task.outputs.length, deleted: sum.deleted + task.deleted }), { before: 0, after: 0, deleted: 0 });
}

function compactionEffect(plan: CompactionPlan): string {
  const { before, after } = rewritten(plan);
  return `Rewrite ${plural(before, "fragment")} into ${count(after)}`;
}

/** Why fragments stay as they are, by the planner's rule. */
export const STAYS: Record<SkipRule, string> = {
  frozen: "frozen: other segments cover the small neighbours, and a compaction crosses no such border",
  alone: "small, without a small neighbour",
  large: "large enough",
  excluded: "excluded",
  held_back: "covered by a segment that Lance cannot read",
  over_budget: "over the limits of one compaction",
};

function trimEffect(plan: TrimPlan): string {
  const gone = plan.records.filter((record) => !record.kept).length;
  const parts = [...(gone > 0 ? [plural(gone, "record")] : []), ...(plan.prune.length > 0 ? [plural(plan.prune.length, "superseded segment")] : [])];
  return parts.length === 0 ? "Nothing to trim" : `Remove ${parts.join(" and ")}`;
}

/** Row maps old enough to go. */
export function agedMaps(plan: GcPlan): GcPlan["row_maps"] {
  return plan.row_maps.filter((map) => map.state === "aged");
}

function gcEffect(plan: GcPlan): string {
  const maps = agedMaps(plan);
  return maps.length === 0 ? "Nothing to delete" : `Delete ${plural(maps.length, "row map")}, ${bytes(maps.reduce((sum, map) => sum + map.bytes, 0))}`;
}

/** Leftovers old enough to go. */
export function removable(plan: OrphanList): Orphan[] {
  return plan.orphans.filter((orphan) => orphan.removable);
}

function orphansEffect(plan: OrphanList): string {
  const old = removable(plan);
  return old.length === 0 ? "Nothing to remove" : `Remove ${plural(old.length, "leftover")}, ${bytes(old.reduce((sum, orphan) => sum + orphan.bytes, 0))}`;
}

export function stagedFiles(plan: DiscardPlan): { files: number; bytes: number } {
  return plan.segments.reduce((sum, segment) => ({ files: sum.files + segment.files.length, bytes: sum.bytes + segment.bytes }), { files: 0, bytes: 0 });
}

/** Plans of which a person ticks what is to go. */
export function isTicked(plan: JobPlan): plan is GcPlan | OrphanList {
  return plan.kind === "gc" || plan.kind === "orphans";
}

/** The plan to remove only what is ticked: what is not named in a plan stays. */
export function onlyTicked<P extends GcPlan | OrphanList>(plan: P, ticked: ReadonlySet<string>): P {
  if (plan.kind === "gc") return { ...plan, row_maps: plan.row_maps.filter((map) => map.state !== "aged" || ticked.has(map.map_id)) };
  return { ...plan, orphans: plan.orphans.filter((orphan) => !orphan.removable || ticked.has(orphan.path)) };
}

const DAY_MS = 86_400_000;

/** An age in whole days, or hours below two days; truncated, so that nothing looks older than it is. */
export function age(ms: number | null): string {
  if (ms === null) return "unknown";
  return ms < 2 * DAY_MS ? plural(Math.floor(ms / 3_600_000), "hour") : plural(Math.floor(ms / DAY_MS), "day");
}

/** The command line that does the same. */
export function commandLine(plan: JobPlan, target: string): string {
  const table = commandTarget(withoutSecrets(target));
  switch (plan.kind) {
    case "drop_index": return `whetstone drop-index ${table} ${shellWord(plan.index.name)}`;
    case "compaction": return `whetstone compact ${table}${compactionOptions(plan)}`;
    case "trim": case "prune": return `whetstone ${plan.kind} ${table}`;
    case "gc": case "orphans": return `whetstone ${plan.kind} ${table} --older-than ${Math.round(plan.older_than_ms / DAY_MS)}d --remove`;
    case "discard": return `whetstone discard ${table} error.json`;
  }
  const index = shellWord(plan.index.name);
  const segments = Math.max(1, plan.runs.length);
  if (plan.kind === "create_index") {
    const given = plan.index.params_from === "options" ? Object.entries(plan.index.params) : [];
    const params = given.map(([key, value]) => ` --param ${shellWord(`${key}=${typeof value === "string" ? value : JSON.stringify(value)}`)}`).join("");
    const how = plan.create.train ? `--num-segments ${segments}` : "--deferred";
    return `whetstone create-index ${table} ${index} ${shellWord(plan.index.column)} ${plan.index.method} ${how}${params}${plan.create.replace ? " --replace" : ""}`;
  }
  return `whetstone ${plan.kind} ${table} ${index} --num-segments ${segments}`;
}

/** Options that somebody gave; the others come from the table wherever the command runs. */
function compactionOptions({ options }: CompactionPlan): string {
  const { from, ...values } = options;
  return Object.entries(values).filter(([key]) => from[key] === "argument").map(([key, value]) => (key === "defer_index_remap" && value === true ? " --defer" : ` --param ${shellWord(`${key}=${JSON.stringify(value)}`)}`)).join("");
}
