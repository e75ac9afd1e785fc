// Layouts and compactions as text.
import type { CompactionPlan, CompactionReport, LayoutForecast, LayoutSummary, Pair } from "../layout-types.js";
import type { Advice } from "../types.js";
import { count, name, percent, plural, ranges, size, table } from "./text.js";

/** Most tasks that are listed. */
const TASKS = 40;

/** Lines of `compaction`. */
export function layout(document: { uri: string; version: number; plan: CompactionPlan; forecast: LayoutForecast; pair?: Pair }): string {
  const { plan, forecast, pair } = document;
  const { before } = forecast;
  const parts = [summary(document), ...groups(plan)];
  const stay = Object.entries(plan.skipped_counts).map(([rule, fragments]) => `${count(fragments)} ${rule.replace("_", " ")}`);
  if (stay.length > 0) parts.push(`stay: ${stay.join(", ")}${before.frozen_examples.length === 0 ? "" : `; frozen are ${ranges(before.frozen_examples)}${before.frozen > before.frozen_examples.length ? ", …" : ""}`}`);
  parts.push(...effects(plan));
  const rows: { name: string; title: string; after: LayoutSummary }[] = [{ name: "now", title: "as it is", after: before }, ...forecast.plans];
  parts.push(table(rows, [
    { head: "PLAN", cell: (p) => p.name },
    { head: "FRAGMENTS", cell: (p) => count(p.after.fragments), right: true },
    { head: "SEGMENTS", cell: (p) => count(p.after.segments), right: true },
    { head: "FROZEN", cell: (p) => count(p.after.frozen), right: true },
    { head: "INDEXED", cell: (p) => indexed(p.after), right: true },
    { head: "WHAT", cell: (p) => p.title },
  ]));
  if (pair !== undefined) parts.push(`${pair.a} and ${pair.b}: ${pair.why}`);
  // Both documents warn of the same compaction.
  const advice = [...forecast.warnings, ...forecast.advice];
  if (advice.length > 0) parts.push(advice.map(line).join("\n"));
  return parts.join("\n\n");
}

function summary({ uri, version, plan }: { uri: string; version: number; plan: CompactionPlan }): string {
  const rewritten = plan.tasks.reduce((sum, task) => sum + task.fragments.length, 0);
  const written = plan.tasks.reduce((sum, task) => sum + task.outputs.length, 0);
  const fragments = plan.fragments_after + rewritten - written;
  return `${uri}\nversion ${version}: a compaction makes ${count(plan.fragments_after)} of ${plural(fragments, "fragment")}, rewriting ${count(rewritten)} in ${plural(plan.tasks.length, "group")} (${plural(plan.estimate.rows, "row")}, ${size(plan.estimate.read_bytes)})`;
}

function groups(plan: CompactionPlan): string[] {
  if (plan.tasks.length === 0) return [];
  const more = plan.tasks.length > TASKS ? `\nand ${plural(plan.tasks.length - TASKS, "more group")}` : "";
  return [table(plan.tasks.slice(0, TASKS), [
    { head: "FRAGMENTS", cell: (t) => ranges(t.fragments) },
    { head: "ROWS", cell: (t) => count(t.rows), right: true },
    { head: "INTO", cell: (t) => ranges(t.outputs.map((output) => output.fragment)) || "–" },
    { head: "WHY", cell: (t) => t.why },
  ]) + more];
}

function effects(plan: CompactionPlan): string[] {
  const changed = plan.effects.filter((effect) => effect.fate !== "KEPT");
  return changed.length === 0 ? [] : [table(changed, [
    { head: "INDEX", cell: (e) => name(e.index) },
    { head: "SEGMENT", cell: (e) => e.uuid?.slice(0, 8) ?? "–" },
    { head: "FATE", cell: (e) => e.fate },
    { head: "WHY", cell: (e) => e.why },
  ])];
}

/** Lines of `compact --dry-run`. */
export function compactionPlan(plan: CompactionPlan): string {
  const parts = [summary({ uri: plan.table, version: plan.v_plan, plan }), ...groups(plan), ...effects(plan)];
  if (plan.warnings.length > 0) parts.push(plan.warnings.map(line).join("\n"));
  return parts.join("\n\n");
}

/** Lines of `compact`. */
export function compactionReport(report: CompactionReport): string {
  if (report.transaction === null) return `nothing to compact; version ${report.version}`;
  const dropped = report.deleted_rows > 0 ? `, ${plural(report.deleted_rows, "deleted row")} dropped` : "";
  const parts = [`${plural(report.fragments_removed.length, "fragment")} became ${count(report.fragments_added.length)} (${ranges(report.fragments_added) || "none"}): ${plural(report.rows, "row")} rewritten${dropped}, ${plural(report.segments_remapped, "segment")} remapped; version ${report.version}`];
  const changed = report.segments.filter((segment) => segment.fate !== "KEPT");
  if (changed.length > 0) {
    parts.push(table(changed, [
      { head: "INDEX", cell: (s) => name(s.index) },
      { head: "SEGMENT", cell: (s) => s.uuid.slice(0, 8) },
      { head: "FATE", cell: (s) => s.fate },
      { head: "NOW", cell: (s) => s.new_uuid?.slice(0, 8) ?? "–" },
    ]));
  }
  return parts.join("\n\n");
}

/** The least covered index. */
function indexed(summary: LayoutSummary): string {
  const known = summary.indexes.map((index) => index.indexed_percent).filter((share) => share !== null);
  return known.length === 0 ? "–" : percent(Math.min(...known), summary.indexes.every((index) => index.coverage_known));
}

function line({ severity, evidence, action }: Advice): string {
  return `${severity}: ${evidence}${action === null ? "" : `\n  ${action.command}`}`;
}
