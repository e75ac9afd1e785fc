// What a job did, read back from the version it wrote; of jobs on an index in the words of the five sets.

import type { ComponentChildren, JSX } from "preact";
import type { BuildPlan, Plan, Ran, RefreshReport } from "../engine/documents.js";
import { bytes, count, duration, name, plural } from "../lib/format.js";
import { Copyable, Icon } from "../parts/basics.js";
import { Outcomes } from "./CompactionView.js";
import { Removed } from "./LeftoverViews.js";
import { Pruned } from "./UpkeepViews.js";
import { commandLine, isBuild } from "./words.js";
import type { Cost } from "./useJob.js";

const LEFT_OUT_SHOWN = 12;

/** The versions before and after; what only removes files writes none. */
export function versionsOf(ran: Ran): { before: number; after: number } {
  switch (ran.kind) {
    case "gc": return { before: ran.report.version, after: ran.report.version };
    case "orphans": case "discard": return { before: ran.plan.v_plan, after: ran.plan.v_plan };
    default: return { before: ran.report.version_before, after: ran.report.version };
  }
}

export function ReportView({ ran, cost, target }: { ran: Ran; cost: Cost; target: string }): JSX.Element {
  const { before, after } = versionsOf(ran);
  const head = (children: ComponentChildren) => <p class="report-head"><Icon name="check" /> <span>{children}</span></p>;
  const command = commandLine(ran.plan, target);
  return (
    <div class="report">
      {ran.kind === "gc" ? head(<Collected ran={ran} />) : ran.kind === "orphans" || ran.kind === "discard" ? head(<><b>{plural(ran.report.removed.length, "file")}</b> removed, {bytes(ran.report.bytes)}. No version was written.</>)
        : before === after ? head("There was nothing to do. No version was written.")
          : head(<><Done ran={ran} /> Version {count(before)} → <b>{count(after)}</b>.</>)}
      <Told ran={ran} />
      <Attempts ran={ran} />
      <dl class="costs">
        <Numbers ran={ran} />
        <div><dt>time</dt><dd>{duration(cost.ms)}</dd></div>
        <div><dt>requests</dt><dd>{count(cost.requests)}</dd></div>
        <div><dt>read</dt><dd>{bytes(cost.bytes)}</dd></div>
        {transactionsOf(ran).map((transaction) => <div key={transaction} class="wide"><dt>transaction</dt><dd><Copyable value={transaction} label="the transaction" /></dd></div>)}
      </dl>
      <section>
        <h3>{ran.kind === "gc" || ran.kind === "orphans" ? "From a shell, for all that is old enough" : ran.kind === "discard" ? "From a shell, with the error as --json prints it" : "The same from a shell"}</h3>
        <p class="command"><Copyable value={command} label="the command"><code>{command}</code></Copyable></p>
      </section>
    </div>
  );
}

type Of<K extends Ran["kind"]> = Extract<Ran, { kind: K }>;

function transactionsOf(ran: Ran): string[] {
  if (ran.kind === "gc" || ran.kind === "orphans" || ran.kind === "discard") return [];
  if (ran.kind === "trim") return ran.report.transactions;
  return ran.report.transaction ? [ran.report.transaction] : [];
}

function Done({ ran }: { ran: Exclude<Ran, Of<"gc"> | Of<"orphans"> | Of<"discard">> }): JSX.Element {
  switch (ran.kind) {
    case "compaction": return <><b>{plural(ran.report.fragments_removed.length, "fragment")}</b> became {count(ran.report.fragments_added.length)}.</>;
    case "trim": {
      const { records_before: was, records_after: is, entry_removed, segments_removed } = ran.report;
      const records = was === null || was === is ? null : entry_removed ? "The history is gone" : `The history has ${plural(is ?? 0, "record")} instead of ${count(was)}`;
      const segments = segments_removed.length === 0 ? null : `${plural(segments_removed.length, "superseded segment")} removed`;
      return <><b>{[records, segments].filter((part) => part !== null).join("; ")}.</b></>;
    }
    case "prune": return <><b>{plural(ran.report.segments_removed.length, "superseded segment")}</b> removed.</>;
    default: return did(ran.plan, ran.report);
  }
}

function Collected({ ran: { report } }: { ran: Of<"gc"> }): JSX.Element {
  if (report.disabled !== null) return <>Nothing was deleted: {name(report.disabled)}</>;
  return <><b>{plural(report.removed.length, "row map")}</b> deleted, {bytes(report.bytes_removed)}; {count(report.kept)} {report.kept === 1 ? "stays" : "stay"}. No version was written.</>;
}

/** The part of the report that each kind of job has of its own. */
function Told({ ran }: { ran: Ran }): JSX.Element | null {
  switch (ran.kind) {
    case "drop_index": return null;
    case "orphans": case "discard": return <Removed report={ran.report} />;
    case "compaction": return (
      <>
        <Outcomes report={ran.report} />
        {ran.report.fragments_removed.length > 0 && <p class="note"><Icon name="info" /> <span>The files of the fragments that were rewritten stay for the versions before, until old versions are cleaned up.</span></p>}
      </>
    );
    case "trim": case "prune": return <section><Pruned segments={ran.report.segments_removed} slot={null} title="segment removed" many="segments removed" /></section>;
    case "gc": {
      const planned = ran.plan.row_maps.filter((map) => map.state === "aged").map((map) => map.map_id);
      const spared = planned.filter((id) => !ran.report.removed.includes(id));
      return (
        <>
          {ran.report.removed.length > 0 && <section><h3>Deleted</h3><ul class="left-out">{ran.report.removed.slice(0, LEFT_OUT_SHOWN).map((id) => <li key={id}><Copyable value={id} label="the row map's id"><code>{name(id)}</code></Copyable></li>)}{ran.report.removed.length > LEFT_OUT_SHOWN && <li>and {count(ran.report.removed.length - LEFT_OUT_SHOWN)} more</li>}</ul></section>}
          {spared.length > 0 && ran.report.disabled === null && <p class="note"><Icon name="info" /> <span>{plural(spared.length, "row map")} of those ticked {spared.length === 1 ? "was" : "were"} not deleted: the last look found {spared.length === 1 ? "it" : "them"} named, or gone.</span></p>}
        </>
      );
    }
    default: return (
      <>
        <Sets plan={ran.plan} report={ran.report} />
        <LeftOut report={ran.report} />
      </>
    );
  }
}

function LeftOut({ report }: { report: RefreshReport }): JSX.Element | null {
  if (report.left_out.length === 0) return null;
  return (
    <section>
      <h3>Left out</h3>
      <ul class="left-out">
        {report.left_out.slice(0, LEFT_OUT_SHOWN).map((item) => <li key={item.fragment}><b>fragment {item.fragment}</b> {item.why}</li>)}
        {report.left_out.length > LEFT_OUT_SHOWN && <li>and {count(report.left_out.length - LEFT_OUT_SHOWN)} more</li>}
      </ul>
    </section>
  );
}

function Attempts({ ran }: { ran: Ran }): JSX.Element | null {
  const lost = ran.kind === "gc" || ran.kind === "orphans" || ran.kind === "discard" ? 0 : ran.report.attempts.filter((a) => a.outcome === "lost").length;
  if (lost === 0) return null;
  return <p class="note"><Icon name="info" /> <span>{plural(lost, "attempt")} met another writer and {lost === 1 ? "was" : "were"} repeated on the newer version.</span></p>;
}

function Numbers({ ran }: { ran: Ran }): JSX.Element | null {
  switch (ran.kind) {
    case "compaction": return (
      <>
        <div><dt>rows written again</dt><dd>{count(ran.report.rows)}</dd></div>
        <div><dt>deleted rows gone</dt><dd>{count(ran.report.deleted_rows)}</dd></div>
        <div><dt>segments written again</dt><dd>{count(ran.report.segments_remapped)}</dd></div>
      </>
    );
    case "trim": return <div><dt>records</dt><dd>{count(ran.report.records_before ?? 0)} → {count(ran.report.records_after ?? 0)}</dd></div>;
    case "prune": case "gc": case "orphans": case "discard": return null;
    default: return <div><dt>segments removed</dt><dd>{count(ran.report.segments_removed)}</dd></div>;
  }
}

function did(plan: Plan, report: RefreshReport): JSX.Element {
  if (!isBuild(plan)) return <><b>{name(report.index_name)}</b> dropped.</>;
  if (plan.kind === "merge") return <><b>{plural(report.segments_removed, "segment")}</b> merged into {count(report.segments_added)}.</>;
  if (plan.kind === "create_index" && plan.tasks.length === 0) return <><b>{name(report.index_name)}</b> defined; nothing is indexed yet.</>;
  return <><b>{plural(report.fragments_indexed, "fragment")}</b> indexed in {plural(report.segments_added, "new segment")}.</>;
}

/** The five sets, each against the largest. */
function Sets({ plan, report }: { plan: BuildPlan; report: RefreshReport }): JSX.Element {
  const sets: [string, number, string][] = [
    ["live", plan.sets.live.length, "fragments of the table"],
    ["covered", plan.sets.covered.length, "were covered before"],
    ["unindexed", plan.sets.unindexed.length, plan.kind === "merge" ? "were not covered" : "were the work"],
    ["declared", report.declared.length, "we built"],
    ["established", report.established.length, "are covered by it now"],
  ];
  const most = Math.max(1, ...sets.map(([, n]) => n));
  return (
    <dl class="sets">
      {sets.map(([name, n, meaning]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd><b>{count(n)}</b><span class="bar"><span style={{ width: `${(n / most) * 100}%` }} /></span><small>{meaning}</small></dd>
        </div>
      ))}
    </dl>
  );
}
