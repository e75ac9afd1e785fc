// The bar of a sandbox table: append, delete, update, take it along. Index jobs and compactions are where they are for every table.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { failureOf } from "../engine/client.js";
import type { ErrorDocument, RowsDone } from "../engine/documents.js";
import { forgetAll } from "../lib/commits.js";
import { count, plural } from "../lib/format.js";
import { trying } from "../lib/keeping.js";
import { latestOnly } from "../parts/basics.js";
import type { Session } from "../session.js";
import type { Act } from "./calls.js";
import { sandboxName } from "./calls.js";
import { outcomeOf } from "./outcome.js";
import type { MakingState } from "./useMaking.js";
import { choiceOf, MOST_ROWS, parseSet, wholeIn } from "./presets.js";

const ACTIONS = ["append", "delete", "update"] as const;
type Action = (typeof ACTIONS)[number];
const NAMES: Record<Action, string> = { append: "Append", delete: "Delete", update: "Update" };

export function SandboxBar({ session, making, target, old, onNew, onGone }: {
  session: Session; making: MakingState; target: string; old: boolean; onNew: () => void; onGone: () => void;
}): JSX.Element {
  const [action, setAction] = useState<Action>("append");
  const [rows, setRows] = useState("1000");
  const [per, setPer] = useState("1000");
  const [where, setWhere] = useState("id < 100");
  const [every, setEvery] = useState("1");
  const [set, setSet] = useState("");
  const [busy, setBusy] = useState(false);
  /** Rows of the change that is under way; null while there is none. */
  const [done, setDone] = useState<RowsDone | null>(null);
  const [said, setSaid] = useState<{ text: string; failed: boolean } | null>(null);
  const [sure, setSure] = useState(false);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);

  const act = actOf(action, { rows, per, where, every, set });
  const run = (work: (signal: AbortSignal) => Promise<string>) => {
    if (running.current) return;
    const control = new AbortController();
    running.current = control;
    setBusy(true);
    setSaid(null);
    work(control.signal)
      .then((text) => setSaid({ text, failed: false }), (error: unknown) => setSaid({ text: sentence(failureOf(error)), failed: true }))
      .finally(() => {
        running.current = null;
        setBusy(false);
        setDone(null);
      });
  };
  const submit = (event: Event) => {
    event.preventDefault();
    if (!act) return;
    run(async (signal) => {
      setDone({ rows: 0, rows_total: 0 });
      return outcomeOf(await session.act(act, signal, (rows, rows_total) => setDone({ rows, rows_total }))) ?? "Done.";
    });
  };
  const download = () => run(async (signal) => {
    const { bytes, unnamed } = await session.engine.call("archive", { target }, { signal });
    const address = URL.createObjectURL(new Blob([bytes], { type: "application/x-tar" }));
    const link = document.createElement("a");
    link.href = address;
    link.download = `${sandboxName(target)}.lance.tar`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    const left = unnamed === 0 ? "" : ` Left out: ${plural(unnamed, "file")} that no version names, of a job that did not get to its end.`;
    return `${link.download} holds the whole table: every version of it, as Lance opens it once unpacked.${left}`;
  });
  // Nothing brings it back, so it takes a second press; anything else in between takes the first one back.
  const removeIt = () => {
    if (!sure) return setSure(true);
    run(async (signal) => {
      await session.engine.call("sandboxRemove", { name: sandboxName(target) }, { signal });
      trying((storage) => forgetAll(storage, target));
      onGone();
      return "Removed.";
    });
  };
  const field = (label: string, value: string, change: (text: string) => void, wide = false, hint?: string) => (
    <label class={`field${wide ? " wide" : ""}`}><span>{label}</span><input type="text" value={value} placeholder={hint} spellcheck={false} autocomplete="off" onInput={(event) => change(event.currentTarget.value)} /></label>
  );
  return (
    <section class="panel sandbox-bar" aria-label="Sandbox">
      <form onSubmit={submit}>
        <div class="segmented" role="group" aria-label="Change the rows">
          {ACTIONS.map((one) => <button key={one} type="button" aria-pressed={action === one} onClick={() => setAction(one)}>{NAMES[one]}</button>)}
        </div>
        {action === "append" && <>{field("Rows", rows, setRows)}{field("Rows per fragment", per, setPer)}</>}
        {action !== "append" && <>{field("Rows where", where, setWhere, true)}{field("Every n-th", every, setEvery)}</>}
        {action === "update" && field("Set", set, setSet, true, "city = 'harbor'")}
        <button type="submit" class="button primary" disabled={busy || !act || old || session.table === null} title={latestOnly(old).title}>{busy ? "Working…" : `${NAMES[action]} rows`}</button>
        <span class="sandbox-tools">
          <button type="button" class="button small" onClick={onNew}>New table…</button>
          <button type="button" class="button small" disabled={busy || session.table === null} onClick={download}>Download</button>
          <button type="button" class="button small" disabled={busy} onClick={removeIt} onBlur={() => setSure(false)}>{sure ? "Remove for good" : "Remove…"}</button>
        </span>
      </form>
      <div class="sandbox-outcome">
        <p class={`sandbox-said${said?.failed ? " is-failed" : ""}`} role="status">{said?.text ?? (making.making ? "Making the table…" : busy ? "Working…" : hintOf(action, session))}</p>
        {making.making ? making.done && <RowBar done={making.done} onCancel={making.cancel} /> : done && <RowBar done={done} onCancel={() => running.current?.abort()} />}
      </div>
    </section>
  );
}

function RowBar({ done: { rows, rows_total }, onCancel }: { done: RowsDone; onCancel: () => void }): JSX.Element {
  return (
    <>
      <progress value={rows_total > 0 ? rows / rows_total : 0} max={1} aria-label="Rows written" />
      <span class="num">{rows_total > 0 ? `${count(rows)} of ${count(rows_total)} rows` : ""}</span>
      <button type="button" class="button small" onClick={onCancel}>Cancel</button>
    </>
  );
}

function actOf(action: Action, { rows, per, where, every, set }: { rows: string; per: string; where: string; every: string; set: string }): Act | null {
  if (action === "append") {
    const added = wholeIn(rows, 1, MOST_ROWS);
    const perFragment = wholeIn(per, 1, MOST_ROWS);
    return added === null || perFragment === null ? null : { do: "append", rows: added, perFragment };
  }
  const nth = wholeIn(every, 1, 1_000_000);
  if (nth === null || where.trim() === "") return null;
  const chosen = choiceOf(where, nth);
  if (action === "delete") return { do: "delete", rows: chosen };
  const values = parseSet(set);
  return values === null ? null : { do: "update", rows: chosen, set: values };
}

function sentence({ code, message, changed }: ErrorDocument): string {
  if (code === "ABORTED" && changed === "nothing") return "Cancelled. Nothing was changed.";
  return `${code}: ${message}`;
}

function hintOf(action: Action, session: Session): string {
  const columns = (session.table?.schema ?? []).map((field) => field.name).join(", ");
  if (action === "append") return "Rows come from the generators of the columns; every append makes new fragments.";
  return `Conditions are joined by AND, over ${columns || "the columns"}; true means every row.`;
}
