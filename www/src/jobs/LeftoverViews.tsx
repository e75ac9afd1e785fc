// The plans that remove files which no version names: whatever lies about, and what one failed job staged.

import type { JSX } from "preact";
import type { DiscardPlan, Orphan, OrphanList, RemovalReport } from "../engine/documents.js";
import { bytes, count, name, plural, shortUuid } from "../lib/format.js";
import { Icon } from "../parts/basics.js";
import { Fates, More } from "./Fates.js";
import { TickTable } from "./TickTable.js";
import type { Ticks } from "./TickTable.js";
import { removable } from "./words.js";

const WHAT: Record<Orphan["what"], string> = { segment: "index segment", row_map: "row map", transaction: "transaction" };

export function OrphansView({ plan, ticks }: { plan: OrphanList; ticks: Ticks | undefined }): JSX.Element {
  const old = removable(plan);
  // What may go comes first, the largest before the others.
  const sorted = [...plan.orphans].sort((a, b) => Number(b.removable) - Number(a.removable) || b.bytes - a.bytes);
  return (
    <>
      {plan.orphans.length === 0 ? <p class="plan-empty"><Icon name="check" /> Every index segment, row map and transaction that lies here is named by a version.</p>
        : old.length === 0 && <p class="plan-empty"><Icon name="check" /> Nothing of this is old enough to go. Nothing would be removed.</p>}
      {plan.orphans.length > 0 && <h3>{count(plan.orphans.length)} named by no version, {count(old.length)} of them old enough to go</h3>}
      <TickTable verb="remove" label="Leftovers" head="what" command="whetstone orphans" ticks={ticks} rows={sorted.map((orphan) => ({
        id: orphan.path, called: orphan.path, may: orphan.removable, age: orphan.age_ms, bytes: orphan.bytes, files: orphan.files, title: orphan.path, state: stateOf(orphan),
        shown: <span title={orphan.path}>{WHAT[orphan.what]} <code>{name(shortName(orphan.path))}</code></span>,
      }))} />
      <p class="quiet">{plural(plan.manifests, "manifest")} read for it, of every branch. What is ticked is looked at once more before it is removed; nothing brings it back. Data files are not looked for: Lance’s own cleanup of old versions finds those.</p>
    </>
  );
}

function stateOf({ removable: may, age_ms: age, why }: Orphan): string {
  return may ? "nobody names it" : age === null ? "age unknown" : why.startsWith("it is too young") ? "too young" : why;
}

/** The uuid, or what a transaction's name begins with. */
function shortName(path: string): string {
  const last = path.slice(path.lastIndexOf("/") + 1);
  return /^[0-9a-f]{8}-/i.test(last) ? shortUuid(last) : last.length > 16 ? `${last.slice(0, 14)}…` : last;
}

export function DiscardView({ plan }: { plan: DiscardPlan }): JSX.Element {
  const staged = plan.segments.filter((segment) => segment.files.length > 0);
  return (
    <>
      <p class="note"><Icon name="info" /> <span>Nothing of the job was committed: {name(plan.why)}.</span></p>
      {staged.length === 0 ? <p class="plan-empty"><Icon name="check" /> None of its files is left.</p> : <h3>{plural(staged.length, "staged segment")}</h3>}
      <Fates of={staged} fate={({ uuid, files, bytes: size }) => ({ key: uuid, title: uuid, who: shortUuid(uuid), fate: "REMOVED", tone: "removed", why: `${plural(files.length, "file")}, ${bytes(size)}` })} />
      <p class="quiet">Looked up on version {count(plan.v_plan)}. A segment that a version names by then stays; nothing brings the others back.</p>
    </>
  );
}

const REMOVED_SHOWN = 12;

export function Removed({ report }: { report: RemovalReport }): JSX.Element {
  return (
    <>
      {report.removed.length > 0 && (
        <section>
          <h3>Removed</h3>
          <ul class="left-out">{report.removed.slice(0, REMOVED_SHOWN).map((path) => <li key={path}><code>{name(path)}</code></li>)}</ul>
          <More all={report.removed.length} shown={REMOVED_SHOWN} />
        </section>
      )}
      {report.left.length > 0 && (
        <section>
          <h3>Still there</h3>
          <ul class="left-out">{report.left.slice(0, REMOVED_SHOWN).map(({ path, why }) => <li key={path}><code>{name(path)}</code> {name(why)}</li>)}</ul>
          <More all={report.left.length} shown={REMOVED_SHOWN} />
        </section>
      )}
    </>
  );
}
