// The dialog of every job: choose, see the plan as it will be, watch it run, read what was established.

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { count, name } from "../lib/format.js";
import { positionOf } from "../map/axis.js";
import type { GhostRun } from "../map/draw.js";
import type { Layout } from "../map/model.js";
import { ErrorPanel } from "../parts/ErrorPanel.js";
import { Icon } from "../parts/basics.js";
import type { Session } from "../session.js";
import { complete, effect, isBuild, nothingToDo, startChoice, TITLES } from "./choice.js";
import type { Choice, Job } from "./choice.js";
import { Choices } from "./Choices.js";
import { PlanView, PlanSkeleton } from "./PlanView.js";
import { ReportView } from "./ReportView.js";
import { RunView } from "./RunView.js";
import { useJob } from "./useJob.js";

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

  const nothing = plan !== null && nothingToDo(plan);
  const start = () => work.start(workers);
  const ready = work.current && !nothing && work.planError === null;
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
          <h2 id="job-title" tabIndex={-1} autofocus>{TITLES[job.kind][stage.name]} {!(job.kind === "create" && stage.name === "choosing") && <span class="dialog-name" title={choice.index}>{name(choice.index)}</span>}</h2>
          {stage.name !== "running" && <button type="button" class="icon-button" aria-label="Close" onClick={onClose}><Icon name="close" /></button>}
        </header>
        {stage.name === "choosing" && (
          <>
            <div class="dialog-main">
              <form class="choices" onSubmit={(event) => { event.preventDefault(); if (ready) start(); }}>
                <Choices choice={choice} schema={session.table?.schema ?? []} taken={layout.lanes.map((lane) => lane.index.name)} workers={workers} onChoice={choose} onWorkers={setWorkers} />
                <button type="submit" class="sr-only" tabIndex={-1} aria-hidden="true" disabled={!ready} />
              </form>
              <div class="plan" aria-live="polite" aria-busy={!work.current && !work.planError && complete(choice)}>
                {work.note && <p class="note"><Icon name="info" /> {work.note}</p>}
                {work.planError ? <ErrorPanel failure={work.planError} target={target} onRetry={work.planAgain} />
                  : plan ? <PlanView plan={plan} layout={layout} stale={!work.current} />
                    : complete(choice) ? <PlanSkeleton /> : <p class="quiet">Name the index and choose its column: the plan appears here before anything is written.</p>}
              </div>
            </div>
            <footer class="dialog-foot">
              <button type="button" class="button" onClick={onClose}>Close</button>
              <button type="button" class={`button primary${job.kind === "drop" ? " danger" : ""}`} disabled={!ready} onClick={start}>{plan ? effect(plan) : complete(choice) ? "Planning…" : "Create the index"}</button>
            </footer>
          </>
        )}
        {stage.name === "running" && (
          <>
            <div class="dialog-main single"><RunView progress={stage.progress} plan={stage.plan} layout={layout} ghosts={ghosts} cancelling={work.cancelling} /></div>
            <footer class="dialog-foot">
              <span class="quiet" role="status">{work.cancelling ? "Cancelled: clearing away what was uploaded." : isBuild(stage.plan) ? "Nothing in the table changes before all segments are built." : "One small file is written: the next manifest."}</span>
              <button type="button" class="button" disabled={work.cancelling} onClick={work.cancel}>{work.cancelling ? "Cancelled" : "Cancel"}</button>
            </footer>
          </>
        )}
        {stage.name === "reported" && (
          <>
            <div class="dialog-main single"><ReportView report={stage.report} plan={stage.plan} cost={stage.cost} target={target} /></div>
            <footer class="dialog-foot">
              <span class="quiet">{stage.report.version === stage.report.version_before ? `Version ${count(stage.report.version)} stays the latest.` : `Version ${count(stage.report.version)} is now the latest.`}</span>
              <button type="button" class="button primary" onClick={onClose}>Done</button>
            </footer>
          </>
        )}
        {stage.name === "failed" && (
          <>
            <div class="dialog-main single"><ErrorPanel failure={stage.error} target={target} onRetry={work.chooseAgain} /></div>
            <footer class="dialog-foot"><button type="button" class="button" onClick={onClose}>Close</button></footer>
          </>
        )}
      </div>
    </dialog>
  );
}
