// What may be removed, one row each with its age and why it stays or goes. Nothing goes that a person did not tick.

import type { ComponentChildren, JSX } from "preact";
import { bytes, count } from "../lib/format.js";
import { More } from "./Fates.js";
import { age } from "./words.js";

const SHOWN = 60;

/** What a person ticked, by id. */
export interface Ticks {
  ticked: ReadonlySet<string>;
  onTicked: (ticked: Set<string>) => void;
}

export interface Row {
  id: string;
  /** Its name in full. */
  called: string;
  /** Whether it may be ticked. */
  may: boolean;
  /** Milliseconds; null where the store does not say. */
  age: number | null;
  bytes: number;
  files: number;
  /** Why it may go, or must stay; `title` says more. */
  state: ComponentChildren;
  title?: string;
  shown: ComponentChildren;
}

/** `ticks` undefined: nothing may go. `command` lists what is not shown here. */
export function TickTable({ verb, label, head, command, rows, ticks }: {
  verb: "delete" | "remove"; label: string; head: string; command: string; rows: readonly Row[]; ticks: Ticks | undefined;
}): JSX.Element | null {
  if (rows.length === 0) return null;
  const free = rows.filter((row) => row.may).map((row) => row.id);
  const all = free.length > 0 && free.every((id) => ticks?.ticked.has(id));
  const toggle = (ids: string[], on: boolean) => {
    const next = new Set(ticks?.ticked);
    for (const id of ids) if (on) next.add(id); else next.delete(id);
    ticks?.onTicked(next);
  };
  const act = verb === "delete" ? "Delete" : "Remove";
  return (
    <>
      <div class="table-scroll" tabIndex={0} role="region" aria-label={label}>
        <table class="runs row-maps">
          <thead><tr><th scope="col">{ticks && free.length > 1 ? <label class="check small"><input type="checkbox" checked={all} onChange={(event) => toggle(free, event.currentTarget.checked)} /> <span>{verb}</span></label> : verb}</th><th scope="col" class="num">age</th><th scope="col" class="num">size</th><th scope="col">state</th><th scope="col" class="num">files</th><th scope="col">{head}</th></tr></thead>
          <tbody>
            {rows.slice(0, SHOWN).map((row) => (
              <tr key={row.id}>
                <td>{row.may && ticks ? <input type="checkbox" aria-label={`${act} ${row.called}`} checked={ticks.ticked.has(row.id)} onChange={(event) => toggle([row.id], event.currentTarget.checked)} /> : "stays"}</td>
                <td class="num">{age(row.age)}</td><td class="num">{bytes(row.bytes)}</td><td title={row.title}>{row.state}</td><td class="num">{count(row.files)}</td><td>{row.shown}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <More all={rows.length} shown={SHOWN}>; <code>{command}</code> lists all of them.</More>
    </>
  );
}
