// Whether a document is a plan this release can run: asked before anything is built, because a plan may come from anywhere.
import { invalid } from "./errors.js";
import type { BuildTask, RefreshPlan } from "./types.js";

const FORMAT = 1;

/** @internal Throws `INVALID_ARGUMENT` naming what is wrong with the plan; what the engine checks again is not checked in depth here. */
export function checkPlan(plan: RefreshPlan): void {
  if (!isObject(plan)) throw invalid("the plan is no object");
  if (plan.kind !== "refresh" || plan.format !== FORMAT) {
    throw invalid(`this release runs plans of kind "refresh", format ${FORMAT}; this one is of kind ${said(plan.kind)}, format ${said(plan.format)}`);
  }
  whole("the plan: v_plan", plan.v_plan);
  if (!isObject(plan.index)) throw invalid("the plan: index is no object");
  if (plan.branch !== null && plan.branch !== undefined && typeof plan.branch !== "string") throw invalid("the plan: branch is neither a name nor null");
  if (!Array.isArray(plan.tasks)) throw invalid("the plan: tasks is no list");
  plan.tasks.forEach((task, i) => checkTask(plan, task, `the plan: task ${i}`));
}

function checkTask(plan: RefreshPlan, task: BuildTask, what: string): void {
  if (!isObject(task)) throw invalid(`${what} is no object`);
  if (!isObject(task.index)) throw invalid(`${what}: index is no object`);
  whole(`${what}: rows`, task.rows);
  if (!Array.isArray(task.fragments) || (task.fragments.length === 0 && !task.copy_of)) throw invalid(`${what}: fragments is no list of fragments`);
  if (task.v_plan !== plan.v_plan) throw invalid(`${what} is for version ${said(task.v_plan)}, the plan for version ${plan.v_plan}`);
  // Built for another index, the segment could only be thrown away again.
  for (const key of ["name", "field_id", "method", "type_url", "row_domain"] as const) {
    if (task.index[key] !== plan.index[key]) throw invalid(`${what}: its index has the ${key} ${said(task.index[key])}, that of the plan ${said(plan.index[key])}`);
  }
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function whole(what: string, value: unknown): void {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw invalid(`${what} is no whole number: ${said(value)}`);
}

function said(value: unknown): string {
  return value === undefined ? "missing" : JSON.stringify(value);
}
