// A running job, folded from the engine's progress events. Pure: time is an argument.

import type { JobPlan, ProgressEvent } from "../engine/documents.js";
import { tasksOf } from "./words.js";

export type TaskState = ProgressEvent["state"];

export interface TaskProgress {
  task: number;
  rows: number;
  total: number;
  state: TaskState;
  worker: number | null;
  startedAt: number | null;
  endedAt: number | null;
}

export interface RunProgress {
  startedAt: number;
  phase: "build" | "commit" | "done";
  tasks: TaskProgress[];
}

export function startProgress(plan: JobPlan, now: number): RunProgress {
  const tasks = tasksOf(plan);
  return {
    startedAt: now, phase: tasks.length > 0 ? "build" : "commit",
    tasks: tasks.map((task, i) => ({ task: i, rows: 0, total: task.rows, state: "waiting", worker: null, startedAt: null, endedAt: null })),
  };
}

export function advance(progress: RunProgress, event: ProgressEvent, now: number): RunProgress {
  if (event.phase !== "build" && event.phase !== "rewrite") return { ...progress, phase: event.phase };
  if (event.task === undefined) return progress;
  const tasks = progress.tasks.map((task): TaskProgress => {
    if (task.task !== event.task) return task;
    const ended = event.state === "done" || event.state === "failed";
    return {
      ...task,
      // A retried task starts again from nothing; otherwise a late message never takes rows back.
      rows: event.state === "retrying" ? 0 : event.state === "done" ? task.total : Math.max(task.rows, Math.min(event.rows, task.total)),
      state: task.state === "done" ? "done" : event.state,
      worker: event.worker ?? task.worker,
      startedAt: task.startedAt ?? (event.state === "waiting" ? null : now),
      endedAt: ended ? (task.endedAt ?? now) : null,
    };
  });
  return { ...progress, tasks };
}

export interface Totals {
  rows: number;
  total: number;
  share: number;
  /** Milliseconds left at the speed so far; null while that cannot be said. */
  left: number | null;
}

export function totals(progress: RunProgress, now: number): Totals {
  let rows = 0;
  let total = 0;
  for (const task of progress.tasks) {
    rows += task.rows;
    total += task.total;
  }
  const share = total > 0 ? rows / total : progress.phase === "build" ? 0 : 1;
  const elapsed = now - progress.startedAt;
  const left = share > 0.02 && elapsed > 300 && share < 1 ? (elapsed / share) * (1 - share) : null;
  return { rows, total, share, left };
}

/** Rows per second of one task so far. */
export function speed(task: TaskProgress, now: number): number | null {
  if (task.startedAt === null || task.rows === 0) return null;
  const ms = (task.endedAt ?? now) - task.startedAt;
  return ms < 50 ? null : (task.rows / ms) * 1000;
}

/** One line per worker: what it is at, or what it did last. */
export function byWorker(progress: RunProgress): { worker: number; task: TaskProgress; done: number }[] {
  const found = new Map<number, { worker: number; task: TaskProgress; done: number }>();
  for (const task of progress.tasks) {
    if (task.worker === null) continue;
    const line = found.get(task.worker);
    const done = (line?.done ?? 0) + (task.state === "done" ? 1 : 0);
    const newer = !line || line.task.state === "done" || (task.startedAt ?? 0) > (line.task.startedAt ?? 0) && task.state !== "done";
    found.set(task.worker, { worker: task.worker, task: newer ? task : line.task, done });
  }
  return [...found.values()].sort((a, b) => a.worker - b.worker);
}
