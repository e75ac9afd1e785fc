// The pages, zones, keys or tokens of a segment: a picture of all that are at hand, and a table that goes through every one of them.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { SegmentParts } from "../engine/documents.js";
import { bytes, count, name, plural } from "../lib/format.js";
import { ErrorPanel } from "../parts/ErrorPanel.js";
import type { Session } from "../session.js";
import { cardinalities, headsOf, heatRows, pageSpans, valueText } from "./listing.js";
import { useAsked } from "./useAsked.js";

/** Rows of the table on screen, and parts asked for at once. */
const PAGE = 20;
const STRETCH = 1000;
/** Fragments in the heat map. */
const HEAT_ROWS = 40;

export function Parts({ session, index, uuid, first, target }: { session: Session; index: string; uuid: string; first: SegmentParts; target: string | null }): JSX.Element | null {
  if (first.count === 0) return null;
  return (
    <figure class="parts">
      <figcaption>{captionOf(first)}</figcaption>
      {first.kind === "pages" && <PageStrip parts={first} />}
      {first.kind === "zones" && <HeatMap parts={first} />}
      {first.kind === "keys" && <Histogram counts={first.items.map(({ rows }) => rows)} unit="row" what="keys" />}
      {first.kind === "tokens" && <Histogram counts={first.items.map(({ documents }) => documents)} unit="document" what="tokens" />}
      <details>
        <summary>{plural(first.count, first.kind.slice(0, -1))} as a table</summary>
        <PartTable session={session} index={index} uuid={uuid} first={first} target={target} />
      </details>
    </figure>
  );
}

function captionOf(parts: SegmentParts): string {
  const shown = parts.left_out === 0 ? "" : `, the first ${count(parts.items.length)} of ${count(parts.count)}`;
  switch (parts.kind) {
    case "pages": return `Values from the least to the greatest, page by page${shown}`;
    case "zones": return "fill" in (parts.items[0] ?? {}) ? `How full the filter of each zone is: the darker, the less it leaves out${shown}` : `How much of the values each zone spans: the darker, the less it leaves out${shown}`;
    case "keys": return `How many keys have how many rows${shown}`;
    case "tokens": return `How many tokens are in how many documents${shown}`;
  }
}

function PageStrip({ parts }: { parts: SegmentParts & { kind: "pages" } }): JSX.Element {
  const spans = pageSpans(parts);
  const [told, setTold] = useState<string | null>(null);
  return (
    <>
      <svg class="page-strip" viewBox="0 0 1000 32" preserveAspectRatio="none" role="img" aria-label={`Bounds of ${plural(spans.length, "page")}; the table below has them`} onMouseLeave={() => setTold(null)}>
        {spans.map((span, i) => span && (
          <rect key={i} class={i % 2 ? "is-odd" : ""} x={span.from * 996} width={Math.max(3, (span.to - span.from) * 996)} y={4} height={24} onMouseEnter={() => setTold(span.title)} />
        ))}
      </svg>
      <p class="parts-ends"><span>{name(valueText(parts.items.find(({ max }) => max !== null)?.min))}</span><b>{told === null ? "" : name(told)}</b><span>{name(valueText(parts.items.at(-1)?.max))}</span></p>
    </>
  );
}

function HeatMap({ parts }: { parts: SegmentParts & { kind: "zones" } }): JSX.Element {
  const rows = heatRows(parts);
  const [told, setTold] = useState<string | null>(null);
  const widest = Math.max(1, ...rows.map(({ zones }) => zones.length));
  return (
    <>
      <div class="heat" role="img" aria-label={`${plural(parts.items.length, "zone")} of ${plural(rows.length, "fragment")}; the table below has them`} onMouseLeave={() => setTold(null)}>
        {rows.slice(0, HEAT_ROWS).map(({ fragment, zones }) => (
          <div key={fragment} class="heat-row">
            <span class="heat-label">{fragment}</span>
            <svg viewBox={`0 0 ${widest} 1`} preserveAspectRatio="none">
              {zones.map((zone, z) => <rect key={z} x={z} width={widest > 1 ? 0.96 : 1} height={1} fill-opacity={0.06 + 0.94 * Math.min(1, Math.max(0, zone.heat))} onMouseEnter={() => setTold(`fragment ${fragment}, ${zone.title}`)} />)}
            </svg>
          </div>
        ))}
      </div>
      <p class="parts-ends"><b>{told === null ? "" : name(told)}</b></p>
      {rows.length > HEAT_ROWS && <p class="quiet">and {plural(rows.length - HEAT_ROWS, "fragment")} more in the table</p>}
    </>
  );
}

function Histogram({ counts, unit, what }: { counts: number[]; unit: string; what: string }): JSX.Element {
  const bars = cardinalities(counts);
  const most = Math.max(1, ...bars.map(({ keys }) => keys));
  return (
    <div class="contents-bars">
      <ul>{bars.map(({ label, keys }) => <li key={label}><span class="bar-label">{label} {label === "1" ? unit : `${unit}s`}</span><span class="bar"><span style={{ width: `${(keys / most) * 100}%` }} /></span><span class="num">{count(keys)}<span class="sr-only"> {what}</span></span></li>)}</ul>
    </div>
  );
}

function PartTable({ session, index, uuid, first, target }: { session: Session; index: string; uuid: string; first: SegmentParts; target: string | null }): JSX.Element {
  const [at, setAt] = useState(0);
  const [held, setHeld] = useState<SegmentParts>(first);
  const { asked, ask } = useAsked<SegmentParts>(`${uuid}/${session.table?.show.version ?? ""}`);
  const wanted = at * PAGE;
  const here = wanted >= held.offset && (wanted < held.offset + held.items.length || held.offset + held.items.length >= held.count);
  const look = () => ask((signal) => session.parts(index, uuid, wanted, STRETCH, signal));
  useEffect(() => { if (!here) look(); }, [wanted]);
  useEffect(() => { if (asked.is === "answered") setHeld(asked.answer); }, [asked]);
  if (asked.is === "failed") return <ErrorPanel failure={asked.error} target={target} onRetry={look} />;
  const pages = Math.max(1, Math.ceil(held.count / PAGE));
  const items = (here ? held.items.slice(wanted - held.offset, wanted - held.offset + PAGE) : []) as unknown as Record<string, unknown>[];
  const heads = headsOf(held);
  const numeric = new Set(heads.filter((head) => typeof (held.items[0] as unknown as Record<string, unknown>)[head] === "number"));
  return (
    <div aria-busy={!here}>
      <div class="table-scroll" tabIndex={0} role="region" aria-label={`${held.kind} of the segment`}>
        <table>
          <thead><tr>{heads.map((head) => <th scope="col" key={head} class={numeric.has(head) ? "num" : ""}>{head.replaceAll("_", " ")}</th>)}</tr></thead>
          <tbody>{items.map((item, i) => <tr key={i}>{heads.map((head) => <td key={head} class={numeric.has(head) ? "num" : "part-value"}>{cellText(head, item[head])}</td>)}</tr>)}</tbody>
        </table>
      </div>
      {pages > 1 && (
        <div class="pager">
          <button type="button" class="button small" disabled={at === 0} onClick={() => setAt(at - 1)}>Previous</button>
          <span>page {count(at + 1)} of {count(pages)}</span>
          <button type="button" class="button small" disabled={at >= pages - 1} onClick={() => setAt(at + 1)}>Next</button>
        </div>
      )}
    </div>
  );
}

function cellText(head: string, value: unknown): string {
  if (typeof value !== "number" || head === "min" || head === "max" || head === "key") return name(valueText(value));
  if (/bytes$/.test(head)) return bytes(value);
  return Number.isInteger(value) ? count(value) : value.toPrecision(3);
}
