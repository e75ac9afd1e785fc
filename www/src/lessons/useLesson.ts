// A lesson that is under way: its table, what the table shows, and what the last act answered.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { failureOf } from "../engine/client.js";
import type { CompactionPlan, ErrorDocument } from "../engine/documents.js";
import type { LessonPlace } from "../lib/url.js";
import type { ActReport } from "../sandbox/calls.js";
import { SANDBOX } from "../sandbox/calls.js";
import type { Session } from "../session.js";
import { lessonOf } from "./lessons.js";
import type { Facts, Lesson, Step } from "./lessons.js";

export interface LessonState {
  lesson: Lesson;
  at: number;
  step: Step;
  /** Whether the table shows the step; null while it is not known. */
  done: boolean | null;
  /** What is being done. */
  busy: "setting up" | "working" | null;
  failure: ErrorDocument | null;
  report: ActReport | null;
  act: () => void;
  restart: () => void;
}

/** Where a lesson's table is. */
export function lessonTarget(id: string): string {
  return `${SANDBOX}${id}`;
}

export function useLesson(
  session: Session, place: LessonPlace | null, target: string | null, making: boolean, makeLesson: (id: string, step: number) => void,
): LessonState | null {
  const lesson = lessonOf(place?.id ?? null);
  const at = lesson ? Math.min(place?.step ?? 0, lesson.steps.length - 1) : 0;
  const step = lesson?.steps[at] ?? null;
  const { table } = session;
  const [working, setWorking] = useState(false);
  const [failure, setFailure] = useState<ErrorDocument | null>(null);
  const [report, setReport] = useState<ActReport | null>(null);
  const [compaction, setCompaction] = useState<{ version: number; plan: CompactionPlan } | null>(null);
  const running = useRef<AbortController | null>(null);

  const work = useCallback((job: (signal: AbortSignal) => Promise<void>) => {
    if (running.current) return;
    const abort = new AbortController();
    running.current = abort;
    setWorking(true);
    setFailure(null);
    job(abort.signal).catch((error: unknown) => { if (!abort.signal.aborted) setFailure(failureOf(error)); }).finally(() => {
      if (running.current !== abort) return;
      running.current = null;
      setWorking(false);
    });
  }, []);
  useEffect(() => () => {
    running.current?.abort();
    running.current = null;
    setWorking(false);
    setFailure(null);
    setReport(null);
  }, [lesson?.id]);

  const prepare = useCallback((from: number) => {
    setReport(null);
    setFailure(null);
    if (lesson) makeLesson(lesson.id, from);
  }, [lesson, makeLesson]);

  // Whoever comes by a link has no such table yet: what the steps before do is done for them.
  const missing = lesson !== null && !making && target === lessonTarget(lesson.id) && session.failure?.code === "TABLE_NOT_FOUND" && table === null;
  useEffect(() => { if (missing) prepare(at); }, [missing]);

  const latest = table !== null && table.show.version === table.latest && target === (lesson ? lessonTarget(lesson.id) : null);
  const version = latest ? table.show.version : null;
  useEffect(() => {
    if (!lesson || version === null) return;
    const abort = new AbortController();
    session.engine.handle(abort.signal).then((handle) => session.engine.call("compaction", { handle }, { signal: abort.signal })).then(
      (plan) => { if (!abort.signal.aborted) setCompaction({ version, plan }); },
      (error: unknown) => { if (!abort.signal.aborted) setFailure(failureOf(error)); },
    );
    return () => abort.abort();
  }, [lesson?.id, version]);

  const act = useCallback(() => {
    if (!step) return;
    work(async (signal) => {
      for (const one of step.acts) {
        setReport(await session.act(one, signal));
      }
    });
  }, [step, work, session.act]);

  if (!lesson || !step) return null;
  const busy = making ? "setting up" : working ? "working" : null;
  const known = latest && compaction?.version === version;
  const facts: Facts | null = latest && table
    ? {
        show: table.show, fragments: table.columns.ids.length, deleted: table.columns.deleted_rows.reduce((sum, rows) => sum + (rows || 0), 0),
        compaction: known ? compaction.plan : null, report,
      }
    : null;
  const done = busy !== null || facts === null || !known ? null : step.done(facts);
  return { lesson, at, step, done, busy, failure, report, act, restart: () => prepare(0) };
}
