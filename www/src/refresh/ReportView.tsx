// What a refresh did, in the words of the five sets, read back from the version it wrote.

import type { JSX } from "preact";
import type { RefreshPlan, RefreshReport } from "../engine/documents.js";
import { bytes, count, duration, plural, shellWord } from "../lib/format.js";
import { withoutSecrets } from "../lib/url.js";
import { Copyable, Icon } from "../parts/basics.js";

const LEFT_OUT_SHOWN = 12;

/** What the run cost as this page saw it, building included. */
export interface Cost {
  ms: number;
  requests: number;
  bytes: number;
}

export function ReportView({ report, plan, cost, target }: { report: RefreshReport; plan: RefreshPlan; cost: Cost; target: string }): JSX.Element {
  const live = plan.sets.live.length;
  const sets: [string, number, string][] = [
    ["live", live, "fragments of the table"],
    ["covered", plan.sets.covered.length, "were covered before"],
    ["unindexed", plan.sets.unindexed.length, "were the work"],
    ["declared", report.declared.length, "we built"],
    ["established", report.established.length, "are covered by it now"],
  ];
  const most = Math.max(1, ...sets.map(([, n]) => n));
  const committed = report.version !== report.version_before;
  const command = `whetstone refresh ${shellWord(withoutSecrets(target))} ${shellWord(report.index_name)} --num-segments ${Math.max(1, plan.runs.length)}`;
  const lost = report.attempts.filter((a) => a.outcome === "lost");
  return (
    <div class="report">
      <p class="report-head">
        <Icon name="check" />
        {committed
          ? <span><b>{plural(report.fragments_indexed, "fragment")}</b> indexed in {plural(report.segments_added, "new segment")}. Version {count(report.version_before)} → <b>{count(report.version)}</b>.</span>
          : <span>There was nothing to do. No version was written.</span>}
      </p>
      <dl class="sets">
        {sets.map(([name, n, meaning]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd><b>{count(n)}</b><span class="bar"><span style={{ width: `${(n / most) * 100}%` }} /></span><small>{meaning}</small></dd>
          </div>
        ))}
      </dl>
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
