// The plan as it will be run: runs with their rows, what becomes of every segment, and what it costs.

import type { JSX } from "preact";
import type { BuildPlan, DropIndexPlan, JobPlan, Plan } from "../engine/documents.js";
import { bytes, count, name, plural, ranges, shortUuid } from "../lib/format.js";
import type { Layout } from "../map/model.js";
import { Bone, Icon, Swatch } from "../parts/basics.js";
import { CompactionView } from "./CompactionView.js";
import { Fates, More } from "./Fates.js";
import { DiscardView, OrphansView } from "./LeftoverViews.js";
import type { Ticks } from "./TickTable.js";
import { GcView, PruneView, TrimView } from "./UpkeepViews.js";

const RUNS_SHOWN = 64;
const SEGMENTS_SHOWN = 40;

export function PlanView({ plan, layout, stale, ticks }: { plan: JobPlan; layout: Layout; stale: boolean; ticks?: Ticks }): JSX.Element {
  return <div class={`plan-body${stale ? " is-stale" : ""}`}><Planned plan={plan} layout={layout} ticks={ticks} /></div>;
}

function Planned({ plan, layout, ticks }: { plan: JobPlan; layout: Layout; ticks: Ticks | undefined }): JSX.Element {
  const slot = (uuid: string) => {
    const place = layout.byUuid.get(uuid.toLowerCase());
    return (place && layout.lanes[place.lane]?.segments[place.segment]?.colour) ?? 0;
  };
  switch (plan.kind) {
    case "compaction": return <CompactionView plan={plan} fragments={layout.columns.ids.length} slot={slot} />;
    case "trim": return <TrimView plan={plan} slot={slot} />;
    case "prune": return <PruneView plan={plan} slot={slot} />;
    case "gc": return <GcView plan={plan} ticks={ticks} />;
    case "orphans": return <OrphansView plan={plan} ticks={ticks} />;
    case "discard": return <DiscardView plan={plan} />;
    case "drop_index": return <DropView plan={plan} rows={layout.lanes.find((lane) => lane.index.name === plan.index.name)?.index.num_rows_indexed ?? null} slot={slot} />;
    default: return <BuildView plan={plan} slot={slot} />;
  }
}

function DropView({ plan, rows, slot }: { plan: DropIndexPlan; rows: number | null; slot: (uuid: string) => number }): JSX.Element {
  return (
    <>
      <p class="note"><Icon name="warn" /> Queries that use <b>{name(plan.index.name)}</b> will scan {rows === null ? "every row" : `all its ${count(rows)} rows`} instead.</p>
      <Segments plan={plan} slot={slot} />
      <dl class="costs">
        <div><dt>files kept for older versions</dt><dd>{bytes(plan.index.size_bytes)}</dd></div>
        <div><dt>planned on</dt><dd>version {count(plan.v_plan)}</dd></div>
      </dl>
    </>
  );
}

/** Why a plan without tasks has none. */
function nothingText(plan: BuildPlan): string {
  if (plan.kind === "merge") return `There is nothing to merge in version ${count(plan.v_plan)}: the segments are as few as asked for. No version would be written.`;
  if (plan.kind === "create_index") return plan.create.train ? "The table has no rows yet. The index is defined now, and a refresh indexes what is appended." : "Only the definition is written. Queries scan every fragment until a refresh indexes them.";
  return `Every fragment of version ${count(plan.v_plan)} is covered. A refresh would change nothing, so no version would be written.`;
}

function BuildView({ plan, slot }: { plan: BuildPlan; slot: (uuid: string) => number }): JSX.Element {
  const { groups } = plan;
  const params = Object.entries(plan.index.params);
  const foot = <p class="quiet">Planned on version {count(plan.v_plan)}: {name(plan.index.method)} on {name(plan.index.column)}{params.length > 0 ? `, ${params.map(([key, value]) => `${name(key)} ${name(String(value))}`).join(", ")}${sourceOf(plan.index.params_from)}` : ""}.</p>;
  if (plan.tasks.length === 0) {
    return (
      <>
        <p class="plan-empty"><Icon name={plan.kind === "create_index" ? "info" : "check"} /> {nothingText(plan)}</p>
        <Segments plan={plan} slot={slot} />
        {plan.kind === "create_index" && foot}
      </>
    );
  }
  return (
    <>
      {plan.warnings.map((warning) => <p class="note" key={warning.rule + warning.evidence}><Icon name="info" /> {warning.evidence}</p>)}
      {plan.absorbed.map((a) => <p class="note" key={a.uuid}><Icon name="info" /> Segment {shortUuid(a.uuid)} {a.how === "copy" ? "is written again without its stale rows" : "is built anew as well"}: {a.why}</p>)}
      <h3>{plan.runs.length === 1 ? "One new segment" : `${count(plan.runs.length)} new segments`}</h3>
      <table class="runs">
        <thead><tr><th scope="col">fragments</th><th scope="col" class="num">count</th><th scope="col" class="num">rows</th><th scope="col"><span class="sr-only">share of the heaviest</span></th></tr></thead>
        <tbody>
          {plan.runs.slice(0, RUNS_SHOWN).map((run, i) => (
            <tr key={i}>
              <td>{ranges(run.fragments, 3)}</td>
              <td class="num">{count(run.fragments.length)}</td>
              <td class="num">{count(run.rows)}</td>
              <td class="bar-cell"><span class="bar"><span style={{ width: `${plan.heaviest_run_rows > 0 ? (run.rows / plan.heaviest_run_rows) * 100 : 100}%` }} /></span></td>
            </tr>
          ))}
        </tbody>
      </table>
      <More all={plan.runs.length} shown={RUNS_SHOWN} />
      <Segments plan={plan} slot={slot} />
      <dl class="costs">
        {groups.before !== null && groups.after !== null && (
          <div title="Fragments that a compaction with default options could merge with a neighbour, before and after">
            <dt>mergeable fragments</dt><dd>{count(groups.before)} → {count(groups.after)}</dd>
          </div>
        )}
        <div><dt>requests</dt><dd>{approx(plan.estimate.requests, count)}</dd></div>
        <div><dt>read</dt><dd>{approx(plan.estimate.read_bytes, bytes)}</dd></div>
        <div><dt>written</dt><dd>{approx(plan.estimate.write_bytes, bytes)}</dd></div>
        <div title="Memory of the heaviest segment's worker"><dt>memory</dt><dd>{plan.estimate.memory_bytes === null ? "unknown" : `at most ${bytes(plan.estimate.memory_bytes)}`}</dd></div>
      </dl>
      {foot}
    </>
  );
}

function approx(value: number | null, format: (n: number | null) => string): string {
  return value === null ? "unknown" : `about ${format(value)}`;
}

/** Where the parameters come from: the uuid of a segment, `defaults` or `options`. */
function sourceOf(from: string): string {
  return from === "defaults" ? " (the defaults)" : from === "options" ? "" : ` (as segment ${shortUuid(from)})`;
}

function Segments({ plan, slot }: { plan: Plan; slot: (uuid: string) => number }): JSX.Element | null {
  if (plan.segments.length === 0) return null;
  return (
    <>
      <h3>{plural(plan.segments.length, "existing segment")}</h3>
      <Fates of={plan.segments} most={SEGMENTS_SHOWN} fate={({ uuid, fate, why }) => ({
        key: uuid, title: uuid, who: <><Swatch slot={slot(uuid)} /> {shortUuid(uuid)}</>, fate, tone: fate === "KEPT" ? "kept" : "removed", why,
      })} />
    </>
  );
}

export function PlanSkeleton(): JSX.Element {
  return (
    <div class="plan-body" aria-hidden="true">
      <h3><Bone width="12ch" /></h3>
      {[0, 1, 2].map((i) => <p key={i}><Bone width="100%" /></p>)}
      <h3><Bone width="16ch" /></h3>
      {[0, 1].map((i) => <p key={i}><Bone width="100%" /></p>)}
      <p><Bone width="60%" /></p>
    </div>
  );
}
