// What a job did, in the words of the five sets, read back from the version it wrote.

import type { JSX } from "preact";
import type { BuildPlan, Plan, RefreshReport } from "../engine/documents.js";
import { bytes, count, duration, name, plural } from "../lib/format.js";
import { Copyable, Icon } from "../parts/basics.js";
import { commandLine, isBuild } from "./choice.js";
import type { Cost } from "./useJob.js";

const LEFT_OUT_SHOWN = 12;

export function ReportView({ report, plan, cost, target }: { report: RefreshReport; plan: Plan; cost: Cost; target: string }): JSX.Element {
  const committed = report.version !== report.version_before;
  const command = commandLine(plan, target);
  const lost = report.attempts.filter((a) => a.outcome === "lost");
  return (
    <div class="report">
      <p class="report-head">
        <Icon name="check" />
        {committed ? <span>{did(plan, report)} Version {count(report.version_before)} → <b>{count(report.version)}</b>.</span> : <span>There was nothing to do. No version was written.</span>}
      </p>
      {isBuild(plan) && <Sets plan={plan} report={report} />}
      {report.left_out.length > 0 && (
        <section>
          <h3>Left out</h3>
          <ul class="left-out">
            {report.left_out.slice(0, LEFT_OUT_SHOWN).map((item) => <li key={item.fragment}><b>fragment {item.fragment}</b> {item.why}</li>)}
            {report.left_out.length > LEFT_OUT_SHOWN && <li>and {count(report.left_out.length - LEFT_OUT_SHOWN)} more</li>}
          </ul>
        </section>
      )}
      {lost.length > 0 && <p class="note"><Icon name="info" /> {plural(lost.length, "attempt")} met another writer and {lost.length === 1 ? "was" : "were"} repeated on the newer version.</p>}
      <dl class="costs">
        <div><dt>segments removed</dt><dd>{count(report.segments_removed)}</dd></div>
        <div><dt>time</dt><dd>{duration(cost.ms)}</dd></div>
        <div><dt>requests</dt><dd>{count(cost.requests)}</dd></div>
        <div><dt>read</dt><dd>{bytes(cost.bytes)}</dd></div>
        {report.transaction && <div class="wide"><dt>transaction</dt><dd><Copyable value={report.transaction} label="the transaction" /></dd></div>}
      </dl>
      <section>
      <h3>The same from a shell</h3>
      <p class="command"><Copyable value={command} label="the command"><code>{command}</code></Copyable></p>
      </section>
    </div>
  );
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
