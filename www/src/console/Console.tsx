// Statements: what only shows is answered at once, what changes the table shows its plan first and waits for a second yes.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { JobPlan, Ran, SqlResult } from "../engine/documents.js";
import { useAsked } from "../inside/useAsked.js";
import { cannotRun, commandLine, effect, nothingToDo } from "../jobs/words.js";
import { PlanView } from "../jobs/PlanView.js";
import { count, name, plural } from "../lib/format.js";
import type { Layout } from "../map/model.js";
import { ErrorPanel } from "../parts/ErrorPanel.js";
import { Bone, Copyable, Icon, latestOnly } from "../parts/basics.js";
import type { Session } from "../session.js";

const ROWS_SHOWN = 200;

export function Console({ session, layout, target, old }: { session: Session; layout: Layout; target: string; old: boolean }): JSX.Element {
  const [text, setText] = useState("");
  const [history, setHistory] = useState<string[]>([]);
  const [at, setAt] = useState(-1);
  const table = tableOf(target);
  const looking = useAsked<SqlResult>(target);
  const running = useAsked<string>(target);
  const submit = () => {
    const statement = text.trim();
    if (statement === "") return;
    setHistory((all) => [statement, ...all.filter((one) => one !== statement)].slice(0, 50));
    setAt(-1);
    running.stop();
    looking.ask((signal) => session.sql(statement, signal));
  };
  const run = (plan: JobPlan) => running.ask(async (signal) => {
    const { ran, table: next } = await session.run(plan, Math.max(1, Math.min(8, navigator.hardwareConcurrency || 2)), signal, () => undefined);
    session.adopt(next);
    return outcome(ran);
  });
  const { asked } = looking;
  const result = asked.is === "answered" ? asked.answer : null;
  const plan = result?.plan ?? null;
  const runnable = plan !== null && result !== null && !result.explain ? plan : null;
  return (
    <div class="console">
      <form class="console-form" onSubmit={(event) => { event.preventDefault(); submit(); }}>
        <textarea rows={2} value={text} spellcheck={false} aria-label="Statement" placeholder={`SHOW INDEXES FROM ${table}`}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey) {
              event.preventDefault();
              submit();
            } else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && history.length > 0 && !text.includes("\n")) {
              const next = Math.max(-1, Math.min(history.length - 1, at + (event.key === "ArrowUp" ? 1 : -1)));
              event.preventDefault();
              setAt(next);
              setText(next < 0 ? "" : history[next]!);
            }
          }} />
        <button type="submit" class="button" disabled={text.trim() === ""}>Run</button>
      </form>
      <ul class="console-examples" aria-label="Examples">
        {examples(table, layout).map((one) => <li key={one}><button type="button" class="link" onClick={() => setText(one)}><code>{one}</code></button></li>)}
      </ul>
      <div aria-live="polite">
        {asked.is === "asking" && <p><Bone width="40ch" /></p>}
        {asked.is === "failed" && <SqlError error={asked.error} target={target} retry={submit} />}
        {result && result.rows.length > 0 && (plan === null || (plan.kind === "compaction" && result.explain)) && <Rows result={result} />}
        {result && result.rows.length === 0 && plan === null && <p class="quiet">No rows.</p>}
        {plan !== null && !(plan.kind === "compaction" && result?.explain) && <PlanView plan={plan} layout={layout} stale={false} />}
        {runnable && running.asked.is === "not asked" && (
          <div class="button-row console-run">
            <button type="button" class="button primary" {...latestOnly(old)} disabled={old || nothingToDo(runnable) || cannotRun(runnable) !== null} onClick={() => run(runnable)}>{effect(runnable)}</button>
            <Copyable value={commandLine(runnable, target)} label="the command"><code>{commandLine(runnable, target)}</code></Copyable>
          </div>
        )}
        {running.asked.is === "asking" && <div class="button-row"><span role="status">Running…</span> <button type="button" class="button small" onClick={running.stop}>Cancel</button></div>}
        {running.asked.is === "answered" && <p class="note"><Icon name="check" /> {running.asked.answer}</p>}
        {running.asked.is === "failed" && <ErrorPanel failure={running.asked.error} target={target} />}
      </div>
    </div>
  );
}

function outcome(ran: Ran): string {
  if (ran.kind === "trim" || ran.kind === "prune" || ran.kind === "gc" || ran.kind === "orphans" || ran.kind === "discard") throw new Error("no statement does this");
  const { version_before: before, version } = ran.report;
  if (version === before) return "There was nothing to do. No version was written.";
  const did = ran.kind === "compaction"
    ? `${plural(ran.report.fragments_removed.length, "fragment")} became ${count(ran.report.fragments_added.length)}, ${plural(ran.report.segments_remapped, "segment")} written again`
    : `${plural(ran.report.fragments_indexed, "fragment")} indexed, ${plural(ran.report.segments_added, "segment")} added, ${count(ran.report.segments_removed)} removed`;
  return `Done: version ${count(before)} → ${count(version)}, ${did}.`;
}

/** A statement that does not parse comes back with a caret under the place; anything else is an error like all others. */
function SqlError({ error, target, retry }: { error: Parameters<typeof ErrorPanel>[0]["failure"]; target: string; retry: () => void }): JSX.Element {
  const excerpt = (error.detail as { excerpt?: unknown } | null)?.excerpt;
  if (error.code !== "SQL_SYNTAX" || typeof excerpt !== "string") return <ErrorPanel failure={error} target={target} onRetry={retry} />;
  return (
    <div class="console-error" role="alert">
      <p><Icon name="warn" /> {name(error.message)}</p>
      <pre tabIndex={0}>{excerpt}</pre>
    </div>
  );
}

function Rows({ result }: { result: SqlResult }): JSX.Element {
  const shown = result.rows.slice(0, ROWS_SHOWN);
  // In a plan an empty cell means that the column does not apply; in an answer, that nobody knows.
  const cell = (value: unknown) => (value === null ? (result.plan === null ? "unknown" : "–") : typeof value === "object" ? JSON.stringify(value) : String(value));
  return (
    <>
      <div class="table-scroll" tabIndex={0} role="region" aria-label={result.statement}>
        <table>
          <thead><tr>{result.columns.map((column) => <th scope="col" key={column}>{name(column)}</th>)}</tr></thead>
          <tbody>{shown.map((row, i) => <tr key={i}>{row.map((value, c) => <td key={c} class={typeof value === "number" ? "num" : ""}>{name(cell(value))}</td>)}</tr>)}</tbody>
        </table>
      </div>
      {result.rows.length > shown.length && <p class="quiet">and {count(result.rows.length - shown.length)} more rows</p>}
    </>
  );
}

/** The name a statement may call the table by: the last part of its address, quoted where it must be. */
function tableOf(target: string): string {
  const last = target.replace(/[?#].*$/, "").replace(/\/+$/, "").split("/").pop()?.replace(/\.lance$/, "") ?? "t";
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(last) ? last : `\`${last.replaceAll("`", "``")}\``;
}

function examples(table: string, layout: Layout): string[] {
  const index = layout.lanes[0]?.index.name;
  const quoted = index === undefined ? null : /^[A-Za-z_][A-Za-z0-9_]*$/.test(index) ? index : `\`${index.replaceAll("`", "``")}\``;
  return [`SHOW INDEXES FROM ${table}`, ...(quoted ? [`EXPLAIN ALTER TABLE ${table} REFRESH INDEX ${quoted} WITH (num_segments = 2)`] : []), `EXPLAIN OPTIMIZE ${table}`];
}
