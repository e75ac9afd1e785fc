// One job from choice to report: plans while the person chooses, runs once, and can be cancelled at any moment.

import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { failureOf } from "../engine/client.js";
import type { ErrorDocument, JobPlan, Ran } from "../engine/documents.js";
import type { Session } from "../session.js";
import { choiceKey, complete } from "./choice.js";
import type { Choice } from "./choice.js";
import { advance, startProgress } from "./progress.js";
import type { RunProgress } from "./progress.js";

/** What the run cost as this page saw it, building included. */
export interface Cost {
  ms: number;
  requests: number;
  bytes: number;
}

export type Stage =
  | { name: "choosing" }
  | { name: "running"; plan: JobPlan; progress: RunProgress }
  | { name: "reported"; ran: Ran; cost: Cost }
  | { name: "failed"; error: ErrorDocument };

type Event =
  | { type: "start"; plan: JobPlan; now: number }
  | { type: "progress"; event: Parameters<typeof advance>[1]; now: number }
  | { type: "reported"; ran: Ran; cost: Cost }
  | { type: "failed"; error: ErrorDocument }
  | { type: "choose" };

function step(stage: Stage, event: Event): Stage {
  switch (event.type) {
    case "start": return { name: "running", plan: event.plan, progress: startProgress(event.plan, event.now) };
    case "progress": return stage.name === "running" ? { ...stage, progress: advance(stage.progress, event.event, event.now) } : stage;
    case "reported": return { name: "reported", ran: event.ran, cost: event.cost };
    case "failed": return { name: "failed", error: event.error };
    case "choose": return { name: "choosing" };
  }
}

export interface RunningJob {
  stage: Stage;
  plan: JobPlan | null;
  planError: ErrorDocument | null;
  /** The plan on screen is the one for these choices; while another is made, it stays but cannot be run. */
  current: boolean;
  note: string | null;
  cancelling: boolean;
  /** Runs the plan on screen, or `part` of it: what a person ticked. */
  start: (workers: number, part?: JobPlan) => void;
  cancel: () => void;
  planAgain: () => void;
  chooseAgain: () => void;
}

export function useJob(session: Session, choice: Choice): RunningJob {
  const [stage, tell] = useReducer(step, { name: "choosing" });
  const [plan, setPlan] = useState<JobPlan | null>(null);
  const [planError, setPlanError] = useState<ErrorDocument | null>(null);
  const [attempt, setAttempt] = useState(0);
  const [note, setNote] = useState<string | null>(null);
  const [cancelling, setCancelling] = useState(false);
  const abort = useRef<AbortController | null>(null);
  const counted = useRef(session.requests);
  counted.current = session.requests;
  const key = choiceKey(choice);
  const ready = complete(choice);

  useEffect(() => {
    setPlanError(null);
    if (!ready) {
      setPlan(null);
      return;
    }
    const control = new AbortController();
    const timer = setTimeout(() => {
      session.plan(choice, control.signal).then(
        (made) => {
          if (control.signal.aborted) return;
          plannedFor.set(made, key);
          setPlan(made);
        },
        (error: unknown) => {
          if (control.signal.aborted) return;
          setPlan(null);
          setPlanError(failureOf(error));
        },
      );
    }, plan || choice.kind === "create" ? 160 : 0);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [key, ready, attempt]);

  useEffect(() => setCancelling(false), [stage.name]);
  useEffect(() => () => abort.current?.abort(), []);
  const current = plan !== null && plannedFor.get(plan) === key;

  const start = (workers: number, part?: JobPlan) => {
    if (!plan || !current) return;
    const control = new AbortController();
    abort.current = control;
    setNote(null);
    const begun = performance.now();
    const before = counted.current;
    const work = part ?? plan;
    tell({ type: "start", plan: work, now: begun });
    session.run(work, workers, control.signal, (event) => tell({ type: "progress", event, now: performance.now() })).then(
      ({ ran, table }) => {
        // A cancel that came too late: the version is there, and the page says so instead of what was asked for.
        session.adopt(table);
        const { count: requests, bytes } = counted.current;
        tell({ type: "reported", ran, cost: { ms: performance.now() - begun, requests: requests - before.count, bytes: bytes - before.bytes } });
      },
      (error: unknown) => {
        const failure = failureOf(error);
        if (failure.code === "ABORTED") {
          setNote(cancelled(work, failure));
          setAttempt((n) => n + 1);
          tell({ type: "choose" });
        } else tell({ type: "failed", error: failure });
      },
    );
  };
  return {
    stage, plan, planError, current, note, cancelling, start,
    cancel: () => {
      setCancelling(true);
      abort.current?.abort();
    },
    planAgain: () => setAttempt((n) => n + 1),
    chooseAgain: () => {
      setPlan(null);
      setAttempt((n) => n + 1);
      tell({ type: "choose" });
    },
  };
}

/** A compaction reserves fragment ids in a version of its own, so that a version may be there that changed nothing else. */
function cancelled(plan: JobPlan, { changed, message }: ErrorDocument): string {
  if (plan.kind === "trim" && changed === "committed") return "Cancelled in the middle: superseded segments are gone, the history’s records are as they were.";
  if (changed !== "nothing") return message;
  return plan.kind === "compaction" ? "Cancelled. Fragments and indexes are as they were." : "Cancelled. Nothing was changed.";
}

/** Which choices a plan answers. Plans are documents of the engine: nothing is added to them. */
const plannedFor = new WeakMap<JobPlan, string>();
