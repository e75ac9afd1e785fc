// The dialog of every job: choose, see the plan as it will be, watch it run, read what was established.

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { count, name, tableName } from "../lib/format.js";
import { positionOf } from "../map/axis.js";
import type { GhostRun } from "../map/draw.js";
import type { Layout } from "../map/model.js";
import { ErrorPanel } from "../parts/ErrorPanel.js";
import { Icon } from "../parts/basics.js";
import type { ErrorDocument, JobPlan } from "../engine/documents.js";
import type { Session } from "../session.js";
import { complete, startChoice } from "./choice.js";
import type { Choice, Job } from "./choice.js";
import { Choices } from "./Choices.js";
import { PlanView, PlanSkeleton } from "./PlanView.js";
import { ReportView, versionsOf } from "./ReportView.js";
import { RunView } from "./RunView.js";
import { useJob } from "./useJob.js";
import { cannotRun, effect, isBuild, isDangerous, isRemoval, isTicked, nothingToDo, onlyTicked, tasksOf, TITLES } from "./words.js";

export function JobDialog({ session, layout, job, segments, target, onSegments, onGhosts, onClose }: {
  session: Session; layout: Layout; job: Job; segments: number; target: string;
  onSegments: (n: number) => void; onGhosts: (ghosts: GhostRun[]) => void; onClose: () => void;
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [choice, setChoice] = useState<Choice>(() => startChoice(job, segments));
  const [workers, setWorkers] = useState(() => Math.max(1, Math.min(8, navigator.hardwareConcurrency || 2)));
  const work = useJob(session, choice);
  const { stage, plan } = work;

  useLayoutEffect(() => {
    dialog.current?.showModal();
  }, []);
  const choose = (next: Choice) => {
    setChoice(next);
    if (next.kind === "refresh") onSegments(next.segments); // so that the address repeats the dialog
  };

  const running = stage.name === "running" ? stage : null;
  const ghosts = useMemo((): GhostRun[] => {
    if (!running || !isBuild(running.plan)) return [];
    const { index, tasks } = running.plan;
    return tasks.map((work, i) => {
      const task = running.progress.tasks[i];
      const positions = Int32Array.from(work.fragments.map((id) => positionOf(layout.columns.ids, id)).filter((p) => p >= 0));
      return { index: index.name, positions, state: task?.state === "done" ? "done" : task?.state === "waiting" || !task ? "waiting" : "running" };
    });
  }, [running?.plan, running?.progress.tasks.map((t) => t.state).join(), layout]);
  useEffect(() => onGhosts(ghosts), [ghosts]);
  useEffect(() => () => onGhosts([]), []);

  // Ticks belong to the plan they were made on: another plan begins without any.
  const [ticks, setTicks] = useState<{ on: typeof plan; ticked: ReadonlySet<string> }>({ on: null, ticked: new Set() });
  const ticked = ticks.on === plan ? ticks.ticked : NOTHING_TICKED;
  const chosen = plan !== null && isTicked(plan) ? onlyTicked(plan, ticked) : plan;
  const untouched = plan !== null && isTicked(plan) && !nothingToDo(plan) && cannotRun(plan) === null && ticked.size === 0;
  const ready = work.current && chosen !== null && complete(choice) && !nothingToDo(chosen) && cannotRun(chosen) === null && work.planError === null;
  const discard = (failure: ErrorDocument) => {
    setChoice({ kind: "discard", failure });
    work.chooseAgain();
  };
  const start = () => work.start(workers, chosen ?? undefined);
  const subject = "index" in choice ? choice.index : tableName(target);
  return (
    <dialog
      ref={dialog} class="dialog" aria-labelledby="job-title"
      onCancel={(event) => {
        event.preventDefault();
        if (stage.name === "running") work.cancel();
        else onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current && stage.name !== "running") onClose();
      }}
    >
      <div class="dialog-body">
        <header class="dialog-head">
          <h2 id="job-title" tabIndex={-1} autofocus>{TITLES[choice.kind][stage.name]} {!(choice.kind === "create" && stage.name === "choosing") && <span class="dialog-name" title={subject}>{name(subject)}</span>}</h2>
          {stage.name !== "running" && <button type="button" class="icon-button" aria-label="Close" onClick={onClose}><Icon name="close" /></button>}
        </header>
        {stage.name === "choosing" && (
          <>
            <div class="dialog-main">
              <form class="choices" onSubmit={(event) => { event.preventDefault(); if (ready) start(); }}>
                <Choices choice={choice} plan={plan} schema={session.table?.schema ?? []} taken={layout.lanes.map((lane) => lane.index.name)} workers={workers} onChoice={choose} onWorkers={setWorkers} />
                <button type="submit" class="sr-only" tabIndex={-1} aria-hidden="true" disabled={!ready} />
              </form>
              <div class="plan" aria-live="polite" aria-busy={!work.current && !work.planError && complete(choice)}>
                {work.note && <p class="note"><Icon name="info" /> {work.note}</p>}
                {work.planError ? <ErrorPanel failure={work.planError} target={target} onRetry={work.planAgain} />
                  : plan ? <PlanView plan={plan} layout={layout} stale={!work.current} ticks={{ ticked, onTicked: (next) => setTicks({ on: plan, ticked: next }) }} />
                    : complete(choice) ? <PlanSkeleton /> : <p class="quiet">{choice.kind === "create" ? "Name the index and choose its column" : "A field holds something that is no number"}: the plan appears here before anything is written.</p>}
              </div>
            </div>
            <footer class="dialog-foot">
              <button type="button" class="button" onClick={onClose}>Close</button>
              <button type="button" class={`button primary${isDangerous(choice.kind) ? " danger" : ""}`} disabled={!ready} onClick={start}>{untouched ? `Tick what to ${plan?.kind === "gc" ? "delete" : "remove"}` : chosen ? effect(chosen) : !complete(choice) ? (job.kind === "create" ? "Create the index" : "Nothing planned") : work.planError ? "Nothing planned" : "Planning…"}</button>
            </footer>
          </>
        )}
        {stage.name === "running" && (
          <>
            <div class="dialog-main single"><RunView progress={stage.progress} plan={stage.plan} layout={layout} ghosts={ghosts} cancelling={work.cancelling} /></div>
            <footer class="dialog-foot">
              <span class="quiet" role="status">{work.cancelling ? "Cancelled: clearing away what was uploaded." : duringRun(stage.plan)}</span>
              <button type="button" class="button" disabled={work.cancelling} onClick={work.cancel}>{work.cancelling ? "Cancelled" : "Cancel"}</button>
            </footer>
          </>
        )}
        {stage.name === "reported" && (
          <>
            <div class="dialog-main single"><ReportView ran={stage.ran} cost={stage.cost} target={target} /></div>
            <footer class="dialog-foot">
              <span class="quiet">Version {count(versionsOf(stage.ran).after)} {versionsOf(stage.ran).before === versionsOf(stage.ran).after ? "stays" : "is now"} the latest.</span>
              <button type="button" class="button primary" onClick={onClose}>Done</button>
            </footer>
          </>
        )}
        {stage.name === "failed" && (
          <>
            <div class="dialog-main single"><ErrorPanel failure={stage.error} target={target} onRetry={work.chooseAgain} onOther={staged(stage.error) ? { label: "Remove what is left…", act: () => discard(stage.error) } : undefined} /></div>
            <footer class="dialog-foot"><button type="button" class="button" onClick={onClose}>Close</button></footer>
          </>
        )}
      </div>
    </dialog>
  );
}

const NOTHING_TICKED: ReadonlySet<string> = new Set();

/** Whether a job left index files on the store that no version names. */
function staged({ code, detail }: ErrorDocument): boolean {
  const left = detail?.staged;
  return code === "COMMIT_UNKNOWN" || (Array.isArray(left) && left.some((path) => typeof path === "string" && path.startsWith("_indices/")));
}

function duringRun(plan: JobPlan): string {
  if (isRemoval(plan)) return `Each is looked at once more before it is ${plan.kind === "gc" ? "deleted" : "removed"}.`;
  if (tasksOf(plan).length > 0) return `Nothing in the table changes before all ${isBuild(plan) ? "segments are built" : "fragments are written"}.`;
  return "One small file is written: the next manifest.";
}
