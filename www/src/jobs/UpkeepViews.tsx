// The plans about a reuse history: what goes, what stays and why.

import type { ComponentChildren, JSX } from "preact";
import type { GcPlan, PrunedSegment, PrunePlan, TrimPlan } from "../engine/documents.js";
import { count, name, plural, shortUuid } from "../lib/format.js";
import { Icon, Swatch } from "../parts/basics.js";
import { Fates } from "./Fates.js";
import { TickTable } from "./TickTable.js";
import type { Ticks } from "./TickTable.js";
import { agedMaps } from "./words.js";

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
      <Fates of={records} fate={(record) => ({
        key: record.record, who: `record ${count(record.record)}`, ...(record.kept ? STAYS : GOES),
        why: <><b>{record.moves.map(name).join("; ")}</b> {record.why.length === 0 ? "no segment needs it any more" : record.why.map(name).join("; ")}</>,
      })} />
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
      <Fates of={segments} fate={(one) => ({
        key: one.uuid, title: one.uuid, who: <>{slot && <Swatch slot={slot(one.uuid)} />} {shortUuid(one.uuid)}</>, ...GOES,
        why: <><b title={one.index}>{name(one.index)}</b> {name(one.why)}</>,
      })} />
    </>
  );
}

const GOES = { fate: "REMOVED", tone: "removed" } as const;
const STAYS = { fate: "KEPT", tone: "kept" } as const;

function Planned({ plan, children }: { plan: { v_plan: number }; children: ComponentChildren }): JSX.Element {
  return <p class="quiet">Planned on version {count(plan.v_plan)}; decided again on the latest version when it is run.{children}</p>;
}

const STATES: Record<GcPlan["row_maps"][number]["state"], string> = { referenced: "named", young: "too young", age_unknown: "age unknown", aged: "nobody names it" };

export function GcView({ plan, ticks }: { plan: GcPlan; ticks: Ticks | undefined }): JSX.Element {
  const aged = agedMaps(plan);
  return (
    <>
      {plan.disabled !== null && <p class="note"><Icon name="warn" /> <span>Nothing can be deleted: {name(plan.disabled)}</span></p>}
      {plan.row_maps.length === 0 && <p class="plan-empty"><Icon name="check" /> This table has no row maps.</p>}
      {plan.row_maps.length > 0 && plan.disabled === null && aged.length === 0 && <p class="plan-empty"><Icon name="check" /> Every row map is named by a version, or too young. Nothing would be deleted.</p>}
      {plan.row_maps.length > 0 && <h3>{plural(plan.row_maps.length, "row map")}, {count(aged.length)} of them old and named by nobody</h3>}
      <TickTable verb="delete" label="Row maps" head="row map" command="whetstone gc" ticks={plan.disabled === null ? ticks : undefined} rows={plan.row_maps.map((map) => ({
        id: map.map_id, called: `row map ${map.map_id}`, may: map.state === "aged", age: map.age, bytes: map.bytes, files: map.files.length, title: map.referenced_by.join(", "),
        state: <>{STATES[map.state]}{map.referenced_by.length > 0 && ` by ${name(map.referenced_by[0] ?? "")}${map.referenced_by.length > 1 ? " and others" : ""}`}</>,
        shown: <code title={map.map_id}>{name(shortUuid(map.map_id))}</code>,
      }))} />
      <p class="quiet">{plural(plan.versions_read, "manifest")} read for it, of every branch. What is ticked is looked at once more before it is deleted; nothing brings it back.</p>
    </>
  );
}
