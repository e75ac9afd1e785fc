// Refreshing one index: choose, see the plan as it will be, watch it run, read what was established.

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { failureOf } from "../engine/client.js";
import type { ErrorDocument, RefreshPlan, RefreshReport } from "../engine/documents.js";
import { count, name, plural } from "../lib/format.js";
import { positionOf } from "../map/axis.js";
import type { GhostRun } from "../map/draw.js";
import type { Layout } from "../map/model.js";
import { ErrorPanel } from "../parts/ErrorPanel.js";
import { Icon } from "../parts/basics.js";
import type { Session } from "../session.js";
import { PlanView, PlanSkeleton } from "./PlanView.js";
import { ReportView } from "./ReportView.js";
import type { Cost } from "./ReportView.js";
import { RunView } from "./RunView.js";
import { advance, startProgress } from "./progress.js";
import type { RunProgress } from "./progress.js";

type Stage =
  | { name: "choosing" }
  | { name: "running"; plan: RefreshPlan; progress: RunProgress }
  | { name: "reported"; plan: RefreshPlan; report: RefreshReport; cost: Cost }
  | { name: "failed"; error: ErrorDocument };

type Event =
  | { type: "start"; plan: RefreshPlan; now: number }
  | { type: "progress"; event: Parameters<typeof advance>[1]; now: number }
  | { type: "reported"; plan: RefreshPlan; report: RefreshReport; cost: Cost }
  | { type: "failed"; error: ErrorDocument }
  | { type: "choose" };

function step(stage: Stage, event: Event): Stage {
  switch (event.type) {
    case "start": return { name: "running", plan: event.plan, progress: startProgress(event.plan, event.now) };
    case "progress": return stage.name === "running" ? { ...stage, progress: advance(stage.progress, event.event, event.now) } : stage;
    case "reported": return { name: "reported", plan: event.plan, report: event.report, cost: event.cost };
    case "failed": return { name: "failed", error: event.error };
    case "choose": return { name: "choosing" };
  }
}

const MOST_SEGMENTS = 64;

export function RefreshDialog({ session, layout, index, segments, target, onSegments, onGhosts, onClose }: {
  session: Session; layout: Layout; index: string; segments: number; target: string;
  onSegments: (n: number) => void; onGhosts: (ghosts: GhostRun[]) => void; onClose: () => void;
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [stage, tell] = useReducer(step, { name: "choosing" });
  const [plan, setPlan] = useState<RefreshPlan | null>(null);
  const [planError, setPlanError] = useState<ErrorDocument | null>(null);
  const [attempt, setAttempt] = useState(0);
  const [absorb, setAbsorb] = useState(false);
  const [workers, setWorkers] = useState(() => Math.max(1, Math.min(8, navigator.hardwareConcurrency || 2)));
  const [note, setNote] = useState<string | null>(null);
  const abort = useRef<AbortController | null>(null);
  const counted = useRef(session.requests);
  counted.current = session.requests;

  useLayoutEffect(() => {
    dialog.current?.showModal();
  }, []);

  useEffect(() => {
    const control = new AbortController();
    setPlanError(null);
    const timer = setTimeout(() => {
      session.plan(index, { segments, absorb }, control.signal).then(
        (made) => {
          if (control.signal.aborted) return;
          plannedFor.set(made, `${segments}/${absorb}`);
          setPlan(made);
        },
        (error: unknown) => {
          if (control.signal.aborted) return;
          setPlan(null);
          setPlanError(failureOf(error));
        },
      );
    }, plan ? 120 : 0);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [index, segments, absorb, attempt]);

  /** The plan on screen is the one for these choices; while another is made, it stays but cannot be run. */
  const current = plan !== null && plannedFor.get(plan) === `${segments}/${absorb}`;

  const running = stage.name === "running" ? stage : null;
  const ghosts = useMemo((): GhostRun[] => {
    if (!running) return [];
    return running.plan.tasks.map((work, i) => {
      const task = running.progress.tasks[i];
      const positions = Int32Array.from(work.fragments.map((id) => positionOf(layout.columns.ids, id)).filter((p) => p >= 0));
      return { index, positions, state: task?.state === "done" ? "done" : task?.state === "waiting" || !task ? "waiting" : "running" };
    });
  }, [running?.plan, running?.progress.tasks.map((t) => t.state).join(), layout, index]);
  useEffect(() => onGhosts(ghosts), [ghosts]);
  useEffect(() => () => {
    abort.current?.abort();
    onGhosts([]);
  }, []);

  const start = () => {
    if (!plan || !current) return;
    const control = new AbortController();
    abort.current = control;
    setNote(null);
    const begun = performance.now();
    const before = counted.current;
    tell({ type: "start", plan, now: begun });
    session.run(plan, workers, control.signal, (event) => tell({ type: "progress", event, now: performance.now() })).then(
      ({ report, table }) => {
        // A cancel that came too late: the version is there, and the page says so instead of what was asked for.
        session.adopt(table);
        const { count: requests, bytes } = counted.current;
        tell({ type: "reported", plan, report, cost: { ms: performance.now() - begun, requests: requests - before.count, bytes: bytes - before.bytes } });
      },
      (error: unknown) => {
        const failure = failureOf(error);
        if (failure.code === "ABORTED") {
          setNote(failure.changed === "nothing" ? "Cancelled. Nothing was changed." : `${failure.message}`);
          setAttempt((n) => n + 1);
          tell({ type: "choose" });
        } else tell({ type: "failed", error: failure });
      },
    );
  };
  const [cancelling, setCancelling] = useState(false);
  useEffect(() => setCancelling(false), [stage.name]);
  const cancel = () => {
    setCancelling(true);
    abort.current?.abort();
  };

  const again = () => {
    setPlan(null);
    setAttempt((n) => n + 1);
    tell({ type: "choose" });
  };

  const fragments = plan ? plan.tasks.reduce((sum, task) => sum + task.fragments.length, 0) : 0;
  const nothing = plan !== null && plan.tasks.length === 0;
  const label = nothing ? "Nothing to index" : plan ? `Index ${plural(fragments, "fragment")} in ${plural(plan.tasks.length, "segment")}` : "Planning…";
  const title = { choosing: "Refresh", running: "Refreshing", reported: "Refreshed", failed: "Refresh of" }[stage.name];

  return (
    <dialog
      ref={dialog} class="dialog" aria-labelledby="refresh-title"
      onCancel={(event) => {
        event.preventDefault();
        if (stage.name === "running") cancel();
        else onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current && stage.name !== "running") onClose();
      }}
    >
      <div class="dialog-body">
        <header class="dialog-head">
          <h2 id="refresh-title" tabIndex={-1} autofocus>{title} <span class="dialog-name" title={index}>{name(index)}</span></h2>
          {stage.name !== "running" && <button type="button" class="icon-button" aria-label="Close" onClick={onClose}><Icon name="close" /></button>}
        </header>
        {stage.name === "choosing" && (
          <>
            <div class="dialog-main">
              <form class="choices" onSubmit={(event) => { event.preventDefault(); start(); }}>
                <Stepper label="Segments" hint="Neighbouring fragments go into the same segment; the heaviest segment is as light as can be." value={segments} least={1} most={MOST_SEGMENTS} onValue={onSegments} />
                <Stepper label="Workers" hint="Segments built at the same time, in this browser." value={workers} least={1} most={16} onValue={setWorkers} />
                <label class="check"><input type="checkbox" checked={absorb} onChange={(event) => setAbsorb(event.currentTarget.checked)} /> <span>Absorb existing segments<small>Builds their fragments again too, so that segments stay few.</small></span></label>
              </form>
              <div class="plan" aria-live="polite" aria-busy={!current && !planError}>
                {note && <p class="note"><Icon name="info" /> {note}</p>}
                {planError ? <ErrorPanel failure={planError} target={target} onRetry={() => setAttempt((n) => n + 1)} /> : plan ? <PlanView plan={plan} layout={layout} stale={!current} /> : <PlanSkeleton />}
              </div>
            </div>
            <footer class="dialog-foot">
              <button type="button" class="button" onClick={onClose}>Close</button>
              <button type="button" class="button primary" disabled={!current || nothing || planError !== null} onClick={start}>{label}</button>
            </footer>
          </>
        )}
        {stage.name === "running" && (
          <>
            <div class="dialog-main single"><RunView progress={stage.progress} plan={stage.plan} layout={layout} ghosts={ghosts} cancelling={cancelling} /></div>
            <footer class="dialog-foot">
              <span class="quiet" role="status">{cancelling ? "Cancelled: clearing away what was uploaded." : "Nothing in the table changes before all segments are built."}</span>
              <button type="button" class="button" disabled={cancelling} onClick={cancel}>{cancelling ? "Cancelled" : "Cancel"}</button>
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
            <div class="dialog-main single"><ErrorPanel failure={stage.error} target={target} onRetry={again} /></div>
            <footer class="dialog-foot"><button type="button" class="button" onClick={onClose}>Close</button></footer>
          </>
        )}
      </div>
    </dialog>
  );
}

/** Which choices a plan answers. Plans are documents of the engine: nothing is added to them. */
const plannedFor = new WeakMap<RefreshPlan, string>();

function Stepper({ label, hint, value, least, most, onValue }: { label: string; hint: string; value: number; least: number; most: number; onValue: (n: number) => void }): JSX.Element {
  const set = (n: number) => {
    if (Number.isFinite(n)) onValue(Math.min(most, Math.max(least, Math.round(n))));
  };
  const id = `stepper-${label.toLowerCase()}`;
  return (
    <div class="stepper">
      <label for={id}>{label}</label>
      <div class="stepper-box">
        <button type="button" class="icon-button" aria-label={`Fewer ${label.toLowerCase()}`} disabled={value <= least} onClick={() => set(value - 1)}><Icon name="minus" /></button>
        <input id={id} type="text" inputMode="numeric" value={value} aria-describedby={`${id}-hint`}
          onChange={(event) => set(Number(event.currentTarget.value))}
          onKeyDown={(event) => {
            if (event.key === "ArrowUp") set(value + 1);
            else if (event.key === "ArrowDown") set(value - 1);
            else return;
            event.preventDefault();
          }} />
        <button type="button" class="icon-button" aria-label={`More ${label.toLowerCase()}`} disabled={value >= most} onClick={() => set(value + 1)}><Icon name="plus" /></button>
      </div>
      <small id={`${id}-hint`}>{hint}</small>
    </div>
  );
}
