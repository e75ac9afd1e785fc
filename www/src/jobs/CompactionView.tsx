// The plan of a compaction: what is written together, what stays and why, and what becomes of every segment of every index.

import type { JSX } from "preact";
import type { CompactionFate, CompactionPlan, CompactionReport, SkipRule } from "../engine/documents.js";
import { bytes, count, name, plural, ranges, shortUuid } from "../lib/format.js";
import { Icon, Swatch } from "../parts/basics.js";
import { Fates, More } from "./Fates.js";
import { rewritten, STAYS } from "./words.js";

const GROUPS_SHOWN = 64;
const WARNINGS_SHOWN = 3;
const WARNINGS_LISTED = 100;

export function CompactionView({ plan, fragments, slot }: { plan: CompactionPlan; fragments: number; slot: (uuid: string) => number }): JSX.Element {
  const stays = Object.entries(plan.skipped_counts) as [SkipRule, number][];
  const staying = stays.reduce((sum, [, n]) => sum + n, 0);
  const { deleted } = rewritten(plan);
  const heaviest = Math.max(1, ...plan.tasks.map((task) => task.rows));
  return (
    <>
      <Warnings warnings={plan.warnings} />
      {plan.tasks.length === 0 ? <p class="plan-empty"><Icon name="check" /> With these choices no fragment of version {count(plan.v_plan)} is rewritten, so no version would be written.</p> : (
        <>
          <p class="plan-sum"><b>{count(fragments)}</b> fragments become <b>{count(plan.fragments_after)}</b></p>
          <h3>{plan.tasks.length === 1 ? "One group" : `${count(plan.tasks.length)} groups`}, each written together</h3>
          <table class="runs">
            <thead><tr><th scope="col">fragments</th><th scope="col" class="num">count</th><th scope="col" class="num">into</th><th scope="col" class="num">rows</th><th scope="col" class="num">deleted</th><th scope="col"><span class="sr-only">share of the heaviest</span></th></tr></thead>
            <tbody>
              {plan.tasks.slice(0, GROUPS_SHOWN).map((task, i) => (
                <tr key={i} title={task.why}>
                  <td>{ranges(task.fragments, 3)}</td><td class="num">{count(task.fragments.length)}</td><td class="num">{count(task.outputs.length)}</td><td class="num">{count(task.rows)}</td><td class="num">{count(task.deleted)}</td>
                  <td class="bar-cell"><span class="bar"><span style={{ width: `${(task.rows / heaviest) * 100}%` }} /></span></td>
                </tr>
              ))}
            </tbody>
          </table>
          <More all={plan.tasks.length} shown={GROUPS_SHOWN} />
        </>
      )}
      {staying > 0 && (
        <>
          <h3>{plural(staying, "fragment")} {staying === 1 ? "stays" : "stay"}</h3>
          <ul class="stays">
            {stays.map(([rule, n]) => {
              const example = plan.skipped.find((one) => one.rule === rule);
              return <li key={rule}><b>{count(n)}</b> <span>{STAYS[rule]}{example && rule === "frozen" && <small>Fragment {example.fragment}: {name(example.why)}</small>}</span></li>;
            })}
          </ul>
        </>
      )}
      <Effects effects={plan.effects} slot={slot} />
      <dl class="costs">
        <div><dt>rows written again</dt><dd>{count(plan.estimate.rows)}</dd></div>
        <div><dt>deleted rows that go</dt><dd>{count(deleted)}</dd></div>
        <div title="Bytes of the data files of the fragments that are rewritten"><dt>read</dt><dd>{plan.estimate.read_bytes === null ? "unknown" : `about ${bytes(plan.estimate.read_bytes)}`}</dd></div>
        <div><dt>segments written again</dt><dd>{count(plan.estimate.segments_remapped)}</dd></div>
        {plan.tasks.length > 0 && <div title="One reserves fragment ids, the next exchanges the fragments"><dt>versions</dt><dd>2</dd></div>}
      </dl>
      <p class="quiet">Planned on version {count(plan.v_plan)}.{plan.writes_history && " Where rows went is recorded in the fragment reuse history."}</p>
    </>
  );
}

/** What stops the plan comes first; a table with many indexes can have one for each of them. */
function Warnings({ warnings }: { warnings: CompactionPlan["warnings"] }): JSX.Element {
  const rank = (rule: string) => (rule === "cannot_run" ? 0 : 1);
  const sorted = [...warnings].sort((a, b) => rank(a.rule) - rank(b.rule));
  const line = (warning: CompactionPlan["warnings"][number]) => <p class="note" key={warning.rule + warning.evidence}><Icon name={warning.severity === "info" ? "info" : "warn"} /> <span>{name(warning.evidence)}</span></p>;
  const rest = sorted.slice(WARNINGS_SHOWN, WARNINGS_LISTED);
  return (
    <>
      {sorted.slice(0, WARNINGS_SHOWN).map(line)}
      {rest.length > 0 && <details class="more-notes"><summary>{plural(sorted.length - WARNINGS_SHOWN, "more warning")}</summary>{rest.map(line)}<More all={sorted.length} shown={WARNINGS_LISTED} /></details>}
    </>
  );
}

/** Fates after which rows that were indexed are not. */
const LOSES: ReadonlySet<CompactionFate> = new Set(["STRIPPED", "RETIRED"]);

function Effects({ effects, slot }: { effects: CompactionPlan["effects"]; slot: (uuid: string) => number }): JSX.Element | null {
  if (effects.length === 0) return null;
  // What changes comes first.
  const sorted = [...effects].sort((a, b) => Number(a.fate === "KEPT") - Number(b.fate === "KEPT"));
  return (
    <>
      <h3>What becomes of {plural(effects.length, "segment")}: {tally(effects)}</h3>
      <Fates of={sorted} fate={(one, i) => ({
        key: one.uuid ?? i, title: one.uuid ?? undefined, who: one.uuid ? <><Swatch slot={slot(one.uuid)} /> {shortUuid(one.uuid)}</> : "–",
        fate: one.fate, tone: toneOf(one.fate), why: <><b title={one.index}>{name(one.index)}</b> {name(one.why)}</>,
      })} />
    </>
  );
}

function toneOf(fate: CompactionFate): "removed" | "quiet" | "kept" {
  return LOSES.has(fate) ? "removed" : fate === "KEPT" ? "quiet" : "kept";
}

/** "3 remapped, 2 kept", in the order they come first. */
function tally(effects: readonly { fate: CompactionFate }[]): string {
  const counts = new Map<CompactionFate, number>();
  for (const { fate } of effects) counts.set(fate, (counts.get(fate) ?? 0) + 1);
  return [...counts].map(([fate, n]) => `${count(n)} ${fate.toLowerCase()}`).join(", ");
}

/** What a compaction did to the segments, as its report says. */
export function Outcomes({ report }: { report: CompactionReport }): JSX.Element | null {
  const changed = report.segments.filter((one) => one.fate !== "KEPT");
  const lost = [...new Set(report.segments.filter((one) => LOSES.has(one.fate)).map((one) => one.index))];
  if (report.segments.length === 0) return null;
  return (
    <section>
      <h3>Segments: {tally(report.segments)}</h3>
      <Fates of={changed} fate={(one) => ({
        key: one.uuid, title: one.uuid, who: shortUuid(one.uuid), fate: one.fate, tone: toneOf(one.fate),
        why: <><b title={one.index}>{name(one.index)}</b>{one.new_uuid && <> is now <code title={one.new_uuid}>{shortUuid(one.new_uuid)}</code></>}</>,
      })} />
      {lost.length > 0 && <p class="note"><Icon name="warn" /> <span>{lost.slice(0, 6).map(name).join(", ")}{lost.length > 6 && ` and ${count(lost.length - 6)} more`} no longer {lost.length === 1 ? "covers" : "cover"} the new fragments: a refresh indexes them.</span></p>}
    </section>
  );
}
