// A job on its way: one bar per worker, the whole with the time left.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { JobPlan } from "../engine/documents.js";
import { count, duration, ranges } from "../lib/format.js";
import type { GhostRun } from "../map/draw.js";
import type { Layout } from "../map/model.js";
import { LaneStrip } from "../map/LaneStrip.js";
import { isBuild, isRemoval, tasksOf } from "./words.js";
import { byWorker, speed, totals } from "./progress.js";
import type { RunProgress } from "./progress.js";

export function RunView({ progress, plan, layout, ghosts, cancelling }: { progress: RunProgress; plan: JobPlan; layout: Layout; ghosts: GhostRun[]; cancelling: boolean }): JSX.Element {
  const [now, setNow] = useState(() => performance.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 250);
    return () => clearInterval(timer);
  }, []);
  const all = totals(progress, now);
  const tasks = tasksOf(plan);
  const what = isBuild(plan) ? "segment" : "group";
  const copied = (task: number) => isBuild(plan) && Boolean(plan.tasks[task]?.copy_of);
  const lines = byWorker(progress);
  const waiting = progress.tasks.filter((task) => task.state === "waiting").length;
  const finished = progress.tasks.filter((task) => task.state === "done").length;
  const phase = cancelling ? "Cancelled" : progress.phase !== "build" ? (plan.kind === "gc" ? "Deleting row maps" : isRemoval(plan) ? "Removing files" : "Writing the new version") : isBuild(plan) ? "Building segments" : "Writing fragments";
  return (
    <div class="run">
      <div class="run-total">
        <div class="run-line">
          <b>{phase}</b>
          {tasks.length > 0 && <span>{count(all.rows)} of {count(all.total)} rows</span>}
          <span class="run-left">{progress.phase !== "build" ? "nearly done" : all.left === null ? "time left: working it out" : `about ${duration(all.left)} left`}</span>
        </div>
        <progress class={progress.phase === "build" ? "" : "is-waiting"} value={all.share} max={1} aria-label={`All ${what}s`} />
      </div>
      {"index" in plan && <LaneStrip layout={layout} index={plan.index.name} ghosts={ghosts} />}
      <ul class="run-workers">
        {lines.map(({ worker, task, done }) => {
          const rate = speed(task, now);
          return (
            <li key={worker}>
              <div class="run-line">
                <b>worker {worker + 1}</b>
                <span class="run-task">{copied(task.task) ? "copy" : what} {task.task + 1}: fragments {ranges(tasks[task.task]?.fragments ?? [], 2)}</span>
                <span class="run-state">{task.state === "running" && what === "group" ? "writing" : STATES[task.state]}{done > 0 && task.state !== "done" ? `, ${done} done` : ""}</span>
              </div>
              <progress value={task.total > 0 ? task.rows / task.total : task.state === "done" ? 1 : 0} max={1} aria-label={`Worker ${worker + 1}`} />
              <div class="run-line quiet">
                <span>{count(task.rows)} of {count(task.total)} rows</span>
                <span>{rate === null ? "" : `${count(Math.round(rate))} rows/s`}</span>
              </div>
            </li>
          );
        })}
        {lines.length === 0 && tasks.length > 0 && <li class="quiet">Starting workers…</li>}
      </ul>
      <p class="quiet" role="status">{tasks.length > 0 && <>{count(finished)} of {count(progress.tasks.length)} {what}s {isBuild(plan) ? "built" : "written"}{waiting > 0 ? `, ${count(waiting)} waiting for a worker` : ""}</>}</p>
    </div>
  );
}

const STATES = { waiting: "waiting", running: "building", retrying: "trying again", done: "done", failed: "failed" };
