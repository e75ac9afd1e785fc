// Meters and health lines: the state of the table in one glance.

import type { JSX } from "preact";
import type { Counted, OpenedTable } from "../engine/protocol.js";
import { bytes, compactCount, count, name, percent, plural } from "../lib/format.js";
import type { HealthLine } from "../lib/health.js";
import type { Job } from "../jobs/choice.js";
import { Bone, Icon, latestOnly } from "./basics.js";

export function Meters({ table, requests }: { table: OpenedTable | null; requests: Counted }): JSX.Element {
  const show = table?.show;
  const meters: [label: string, value: string | null, title: string, aside?: string][] = [
    ["rows", show ? compactCount(show.rows) : null, show ? `${count(show.rows)} live rows` : ""],
    ["deleted", show ? compactCount(show.fragments.deleted) : null, "Rows marked as deleted, still in the files"],
    ["fragments", show ? count(show.fragments.count) : null, ""],
    ["indexes", show ? count(show.indices.length) : null, ""],
    ["segments", show ? count(show.indices.reduce((sum, index) => sum + index.num_segments, 0)) : null, "Segments of all indexes; a query through an index opens all of its own"],
    ["indexed", show ? leastIndexed(show.indices) : null, "Share of the rows that the least complete index covers"],
    ["data", show ? bytes(show.fragments.bytes) : null, "Bytes of all data files of this version"],
    ["read", bytes(requests.bytes), "What this page has read so far, and in how many requests", plural(requests.count, "request")],
  ];
  return (
    <dl class="meters" aria-busy={table === null}>
      {meters.map(([label, value, title, aside]) => (
        <div key={label} title={title || undefined} data-meter={label}>
          <dt>{label}</dt>
          <dd>{value ?? <Bone width="4ch" />}{aside && <small>{aside}</small>}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The share that the least complete index covers; a bound where coverage is not recorded. */
function leastIndexed(indices: OpenedTable["show"]["indices"]): string {
  const shares = indices.flatMap((index) => (index.indexed_percent === null ? [] : [index.indexed_percent]));
  if (shares.length === 0) return "–";
  return `${indices.every((index) => index.coverage_known) ? "" : "≥ "}${percent(Math.min(...shares))}`;
}

const SHOWN = 4;

export function HealthLines({ lines, layout, old, onJob, onShow }: {
  lines: HealthLine[] | null; layout: HealthLine | null; old: boolean; onJob: (job: Job) => void; onShow: (index: string) => void;
}): JSX.Element {
  const bone = <li class="health-line health-layout" key="bone"><span /><Bone width="42ch" /></li>;
  if (!lines) return <ul class="health" aria-busy="true">{bone}{bone}</ul>;
  const shown = lines.slice(0, SHOWN);
  const rest = lines.slice(SHOWN);
  const item = (line: HealthLine) => (
    <li class={`health-line health-${line.severity}${line.rule === "layout" ? " health-layout" : ""}`} key={`${line.rule}/${line.index ?? ""}/${line.text}`}>
      <Icon name={line.severity === "good" ? "check" : line.severity === "warning" ? "warn" : "info"} />
      <span class="health-text">{line.subject && <b title={line.subject}>{name(line.subject)}</b>} {name(line.text)}</span>
      {line.action?.kind === "compact" && <button type="button" class="button small" {...latestOnly(old)} onClick={() => onJob({ kind: "compact", rows: null })}>{line.action.label}</button>}
      {line.action && line.index !== null && line.action.kind !== "compact" && (line.action.kind === "show"
        ? <button type="button" class="button small" onClick={() => onShow(line.index!)}>{line.action.label}</button>
        : <button type="button" class={`button small${line.action.kind === "refresh" ? " primary" : ""}`} {...latestOnly(old)} onClick={() => onJob({ kind: line.action!.kind as "refresh" | "merge", index: line.index! })}>{line.action.label}</button>)}
    </li>
  );
  return (
    <>
      <ul class="health" aria-label="Health">{shown.map(item)}{layout ? item(layout) : bone}</ul>
      {rest.length > 0 && (
        <details class="health-more">
          <summary>{count(rest.length)} more</summary>
          <ul class="health">{rest.map(item)}</ul>
        </details>
      )}
    </>
  );
}
