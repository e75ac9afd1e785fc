// One step of a lesson: do this, watch for that, and why. It keeps its height, whatever happens in it.

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { View } from "../lib/url.js";
import { ErrorPanel } from "../parts/ErrorPanel.js";
import { Copyable, Icon } from "../parts/basics.js";
import { outcomeOf } from "../sandbox/outcome.js";
import { LESSONS } from "./lessons.js";
import type { LessonState } from "./useLesson.js";

export function LessonPanel({ state, view, onStep, onView, onLesson, onClose }: {
  state: LessonState; view: View; onStep: (step: number) => void; onView: (view: View) => void; onLesson: (id: string) => void; onClose: () => void;
}): JSX.Element {
  const { lesson, at, step, busy, failure } = state;
  const heading = useRef<HTMLHeadingElement>(null);
  const shown = useRef(at);
  // Looking back at a step whose table has moved on since: it was done, and is not done again.
  const reached = useRef({ lesson: lesson.id, at });
  if (reached.current.lesson !== lesson.id) reached.current = { lesson: lesson.id, at };
  reached.current.at = Math.max(reached.current.at, at);
  const back = at < reached.current.at;
  // Screen readers and keyboards follow the step; the first one is where they are anyway.
  useEffect(() => {
    if (shown.current !== at) heading.current?.focus({ preventScroll: true });
    shown.current = at;
  }, [at]);
  const seen = step.view === undefined || step.view === view;
  const done = state.done === null ? null : state.done && seen;
  const last = at === lesson.steps.length - 1;
  const next = LESSONS[LESSONS.findIndex((one) => one.id === lesson.id) + 1] ?? null;
  const doIt = () => {
    if (step.view !== undefined) onView(step.view);
    if (step.acts.length > 0) state.act();
  };
  return (
    <section class="panel lesson" aria-labelledby="lesson-title">
      <header class="lesson-head">
        <h2 id="lesson-title">{lesson.title}</h2>
        <ol class="lesson-dots" aria-label="Steps">
          {lesson.steps.map((one, i) => (
            <li key={i}><button type="button" aria-current={i === at ? "step" : undefined} aria-label={`Step ${i + 1}: ${one.do}`} title={`Step ${i + 1}`} disabled={i > reached.current.at && !(i === at + 1 && done === true)} onClick={() => onStep(i)}>{i + 1}</button></li>
          ))}
        </ol>
        <span class="lesson-tools">
          <button type="button" class="button small" onClick={() => { reached.current.at = 0; onStep(0); state.restart(); }} disabled={busy !== null}>Start over</button>
          <button type="button" class="icon-button" aria-label="Leave the lesson" title="Leave the lesson" onClick={onClose}><Icon name="close" /></button>
        </span>
      </header>
      <div class="lesson-body">
        <div class="lesson-do">
          <h3 ref={heading} tabIndex={-1}><span class="lesson-number">{at + 1}</span> Do this</h3>
          <p>{step.do}</p>
          <p class="lesson-status" role="status">
            {busy === "setting up" ? "Making the table…" : busy === "working" ? "Working…"
              : back ? "Done before. Start over to do it again."
              : done === true ? <><Icon name="check" /> <span>Done: {(state.report && outcomeOf(state.report)) ?? "the table shows it."}</span></>
                : done === false && state.done && !seen ? "Not there yet: open the view named above."
                  : done === false ? "Waiting for it. Do it here, or with the page’s own buttons." : " "}
          </p>
          <div class="button-row">
            {step.button !== null && <button type="button" class={`button${done === true ? "" : " primary"}`} disabled={busy !== null || back || done !== false} onClick={doIt}>{step.button}</button>}
            {!last && <button type="button" class={`button${done === true || back ? " primary" : ""}`} disabled={done !== true && !back} onClick={() => onStep(at + 1)}>Next</button>}
            {last && next !== null && <button type="button" class={`button${done === true ? " primary" : ""}`} disabled={done !== true} onClick={() => onLesson(next.id)}>Next lesson</button>}
            {last && next === null && <button type="button" class={`button${done === true ? " primary" : ""}`} disabled={done !== true} onClick={onClose}>Finish</button>}
          </div>
        </div>
        <div class="lesson-watch"><h3>Watch for</h3><p>{step.watch}</p></div>
        <div class="lesson-why"><h3>Why</h3><p>{step.why}</p><p class="lesson-link"><Copyable value={window.location.href} label="link to this step">Link to this step</Copyable></p></div>
      </div>
      {failure && <ErrorPanel failure={failure} target={null} onRetry={state.restart} />}
    </section>
  );
}
