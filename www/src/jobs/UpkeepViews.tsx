// The plans about a reuse history: what goes, what stays and why.

import type { ComponentChildren, JSX } from "preact";
import type { GcPlan, PrunedSegment, PrunePlan, TrimPlan } from "../engine/documents.js";
import { bytes, count, name, plural, shortUuid } from "../lib/format.js";
import { Icon, Swatch } from "../parts/basics.js";
import { age, agedMaps } from "./words.js";

const SHOWN = 60;

/** Row maps that a person ticked to be deleted. */
export interface Ticks {
  ticked: ReadonlySet<string>;
  onTicked: (ticked: Set<string>) => void;
}

type Slot = (uuid: string) => number;

export function TrimView({ plan, slot }: { plan: TrimPlan; slot: Slot }): JSX.Element {
  const gone = plan.records.filter((record) => !record.kept);
  const kept = plan.records.filter((record) => record.kept);
  return (
    <>
      {plan.index_version === null && <p class="plan-empty"><Icon name="check" /> Version {count(plan.v_plan)} has no reuse history.</p>}
      {plan.index_version !== null && gone.length + plan.prune.length === 0 && <p class="plan-empty"><Icon name="check" /> Every record of version {count(plan.v_plan)} is still needed. No version would be written.</p>}
      {plan.outcome === "delete" && <p class="note"><Icon name="info" /> No record is needed any more: the history goes, and with it what queries have to translate.</p>}
      <Pruned segments={plan.prune} slot={slot} title="superseded segment" />
      <Records title="go" records={gone} />
      <Records title="stay" records={kept} />
      <Planned plan={plan}>{gone.length > 0 && plan.prune.length > 0 && " Segments and records go in a version each."}</Planned>
    </>
  );
}

function Records({ title, records }: { title: "go" | "stay"; records: TrimPlan["records"] }): JSX.Element | null {
  if (records.length === 0) return null;
  return (
    <>
      <h3>{plural(records.length, "record")} {records.length === 1 ? `${title}${title === "go" ? "es" : "s"}` : title}</h3>
      <ul class="fates records">
        {records.slice(0, SHOWN).map((record) => (
          <li key={record.record}>
            <span class="fate-uuid">record {count(record.record)}</span>
            <Goes goes={!record.kept} />
            <span class="fate-why"><b>{record.moves.map(name).join("; ")}</b> {record.why.length === 0 ? "no segment needs it any more" : record.why.map(name).join("; ")}</span>
          </li>
        ))}
      </ul>
      {records.length > SHOWN && <p class="quiet">and {count(records.length - SHOWN)} more</p>}
    </>
  );
}

export function PruneView({ plan, slot }: { plan: PrunePlan; slot: Slot }): JSX.Element {
  return (
    <>
      {plan.segments.length === 0 && <p class="plan-empty"><Icon name="check" /> No segment of version {count(plan.v_plan)} is superseded. No version would be written.</p>}
      <Pruned segments={plan.segments} slot={slot} title="superseded segment" />
      <Planned plan={plan}>{plan.segments.length > 0 && " Their files stay for older versions, until those are cleaned up."}</Planned>
    </>
  );
}

/** Segments that go, and what makes each needless. */
export function Pruned({ segments, slot, title, many }: { segments: readonly PrunedSegment[]; slot: Slot | null; title: string; many?: string }): JSX.Element | null {
  if (segments.length === 0) return null;
  return (
    <>
      <h3>{plural(segments.length, title, many)}</h3>
      <ul class="fates">
        {segments.slice(0, SHOWN).map((one) => (
          <li key={one.uuid}>
            <span class="fate-uuid" title={one.uuid}>{slot && <Swatch slot={slot(one.uuid)} />} {shortUuid(one.uuid)}</span>
            <Goes goes />
            <span class="fate-why"><b title={one.index}>{name(one.index)}</b> {name(one.why)}</span>
          </li>
        ))}
      </ul>
      {segments.length > SHOWN && <p class="quiet">and {count(segments.length - SHOWN)} more</p>}
    </>
  );
}

function Goes({ goes }: { goes: boolean }): JSX.Element {
  return <span class={`fate fate-${goes ? "removed" : "kept"}`}>{goes ? "REMOVED" : "KEPT"}</span>;
}

function Planned({ plan, children }: { plan: { v_plan: number }; children: ComponentChildren }): JSX.Element {
  return <p class="quiet">Planned on version {count(plan.v_plan)}; decided again on the latest version when it is run.{children}</p>;
}

const STATES: Record<GcPlan["row_maps"][number]["state"], string> = { referenced: "named", young: "too young", age_unknown: "age unknown", aged: "nobody names it" };

export function GcView({ plan, ticks }: { plan: GcPlan; ticks: Ticks | undefined }): JSX.Element {
  const aged = agedMaps(plan);
  const free = plan.disabled === null && ticks !== undefined;
  const all = aged.length > 0 && aged.every((map) => ticks?.ticked.has(map.map_id));
  const toggle = (ids: string[], on: boolean) => {
    const next = new Set(ticks?.ticked);
    for (const id of ids) if (on) next.add(id); else next.delete(id);
    ticks?.onTicked(next);
  };
  return (
    <>
      {plan.disabled !== null && <p class="note"><Icon name="warn" /> <span>Nothing can be deleted: {name(plan.disabled)}</span></p>}
      {plan.row_maps.length === 0 && <p class="plan-empty"><Icon name="check" /> This table has no row maps.</p>}
      {plan.row_maps.length > 0 && plan.disabled === null && aged.length === 0 && <p class="plan-empty"><Icon name="check" /> Every row map is named by a version, or too young. Nothing would be deleted.</p>}
      {plan.row_maps.length > 0 && (
        <>
          <h3>{plural(plan.row_maps.length, "row map")}, {count(aged.length)} of them old and named by nobody</h3>
          <div class="table-scroll" tabIndex={0} role="region" aria-label="Row maps">
            <table class="runs row-maps">
              <thead><tr><th scope="col">{free && aged.length > 1 ? <label class="check small"><input type="checkbox" checked={all} onChange={(event) => toggle(aged.map((map) => map.map_id), event.currentTarget.checked)} /> <span>delete</span></label> : "delete"}</th><th scope="col" class="num">age</th><th scope="col" class="num">size</th><th scope="col">state</th><th scope="col" class="num">files</th><th scope="col">row map</th></tr></thead>
              <tbody>
                {plan.row_maps.slice(0, SHOWN).map((map) => (
                  <tr key={map.map_id}>
                    <td>{map.state === "aged" && free ? <input type="checkbox" aria-label={`Delete row map ${map.map_id}`} checked={ticks.ticked.has(map.map_id)} onChange={(event) => toggle([map.map_id], event.currentTarget.checked)} /> : "stays"}</td>
                    <td class="num">{age(map.age)}</td><td class="num">{bytes(map.bytes)}</td>
                    <td title={map.referenced_by.join(", ")}>{STATES[map.state]}{map.referenced_by.length > 0 && ` by ${name(map.referenced_by[0] ?? "")}${map.referenced_by.length > 1 ? " and others" : ""}`}</td>
                    <td class="num">{count(map.files.length)}</td><td><code title={map.map_id}>{name(shortUuid(map.map_id))}</code></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {plan.row_maps.length > SHOWN && <p class="quiet">and {count(plan.row_maps.length - SHOWN)} more; <code>whetstone gc</code> lists all of them.</p>}
        </>
      )}
      <p class="quiet">{plural(plan.versions_read, "manifest")} read for it, of every branch. What is ticked is looked at once more before it is deleted; nothing brings it back.</p>
    </>
  );
}
