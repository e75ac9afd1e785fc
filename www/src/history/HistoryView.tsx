// The fragment reuse history: the graph, what stays and why, what a trim and a prune would take, and the same as tables.

import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { HistoryDocument } from "../engine/documents.js";
import { useAsked } from "../inside/useAsked.js";
import { bytes, count, name, plural, ranges, shortUuid } from "../lib/format.js";
import type { Job } from "../jobs/choice.js";
import type { Selection } from "../lib/url.js";
import type { Layout } from "../map/model.js";
import { Bone, Copyable, Icon, latestOnly, Swatch } from "../parts/basics.js";
import { ErrorPanel } from "../parts/ErrorPanel.js";
import type { Session } from "../session.js";
import { kindName, ownColours } from "./graph.js";
import { HistoryGraph } from "./HistoryGraph.js";

/** Transitions drawn and listed at once; segments listed at once, and offered above the graph. */
const PAGE = 40;
const SEGMENTS = 100;
const OFFERED = 16;
const IDS = 8;

export function HistoryView({ session, layout, selection, target, old, onSelect, onJob }: {
  session: Session; layout: Layout; selection: Selection | null; target: string; old: boolean; onSelect: (s: Selection | null) => void; onJob: (job: Job) => void;
}): JSX.Element {
  const version = session.table?.show.version ?? 0;
  const { asked, ask } = useAsked<HistoryDocument>(`${target}/${version}`);
  const look = () => ask((signal) => session.history(signal));
  useEffect(look, [target, version]);
  if (asked.is === "failed") return <ErrorPanel failure={asked.error} target={target} onRetry={look} />;
  if (asked.is !== "answered") return <div class="history" aria-busy="true">{[0, 1, 2, 3].map((i) => <p key={i}><Bone width="100%" /></p>)}</div>;
  const history = asked.answer;
  if (history.index_version === null) {
    return (
      <div class="empty">
        <p>This version has no fragment reuse history. One begins when a compaction leaves index files as they are and records what it moved instead.</p>
        <p><button type="button" class="button small" {...latestOnly(old)} onClick={() => onJob({ kind: "gc" })}>Look for row maps that nothing names…</button></p>
      </div>
    );
  }
  return <Told history={history} layout={layout} selection={selection} old={old} onSelect={onSelect} onJob={onJob} />;
}

function Told({ history, layout, selection, old, onSelect, onJob }: {
  history: HistoryDocument; layout: Layout; selection: Selection | null; old: boolean; onSelect: (s: Selection | null) => void; onJob: (job: Job) => void;
}): JSX.Element {
  const { transitions, segments } = history;
  const transition = selection?.kind === "transition" ? selection.position : null;
  const [page, setPage] = useState(() => (transition === null ? 0 : Math.floor(transition / PAGE)));
  useEffect(() => {
    if (transition !== null && transition < transitions.length) setPage(Math.floor(transition / PAGE));
  }, [transition]);
  const pages = Math.max(1, Math.ceil(transitions.length / PAGE));
  const at = Math.min(page, pages - 1);
  const [first, end] = [at * PAGE, Math.min(transitions.length, (at + 1) * PAGE)];
  const slots = useMemo(() => ownColours(segments, (uuid) => {
    const place = layout.byUuid.get(uuid);
    return place && layout.lanes[place.lane]?.segments[place.segment]?.colour;
  }), [segments, layout]);
  const found = selection?.kind === "segment" ? segments.findIndex((segment) => segment.uuid.toLowerCase() === selection.uuid) : -1;
  const segment = found < 0 ? null : found;
  const removable = transitions.filter((one) => !one.kept).length;
  const pruned = segments.filter((one) => !one.kept).length;
  const maps = history.row_maps.length;
  const select = (s: number) => onSelect(s === segment ? null : { kind: "segment", uuid: segments[s]!.uuid.toLowerCase() });
  return (
    <div class="history">
      <p class="history-summary">
        {plural(transitions.length, "transition")}{removable > 0 && <>, of which a trim removes <b>{count(removable)}</b></>} · {plural(segments.length, "segment")}{pruned > 0 && <>, of which a prune removes <b>{count(pruned)}</b></>}
        {maps > 0 && <> · {plural(maps, "row map")}, {bytes(history.row_maps.reduce((sum, map) => sum + map.size, 0))}</>}
      </p>
      <div class="button-row">
        {history.supported && UPKEEP_BUTTONS.map(([kind, label]) => <button key={kind} type="button" class={`button small${kind === "trim" && removable + pruned > 0 ? " primary" : ""}`} {...latestOnly(old)} onClick={() => onJob({ kind })}>{label}</button>)}
      </div>
      {!history.supported && <p class="note"><Icon name="warn" /> This history holds something this release does not know. Nothing is derived from it and nothing here changes it; Lance’s own maintenance can.</p>}
      {history.supported && removable + pruned > 0 && <p class="note"><Icon name="info" /> What is dashed is not needed any more; a trim takes it out.</p>}
      {transitions.length > 0 && (
        <>
          {segments.length > 0 && (
            <div class="history-segments" role="group" aria-label="Follow a segment">
              {segments.slice(0, OFFERED).map((one, s) => (
                <button key={one.uuid} type="button" class={`history-segment${one.kept ? "" : " is-removed"}`} aria-pressed={s === segment} title={`${one.index} ${one.uuid}: ${one.why}`} onClick={() => select(s)}>
                  <Swatch slot={slots[s] ?? 0} /> <span>{name(one.index)}</span> <code>{shortUuid(one.uuid)}</code>
                </button>
              ))}
              {segments.length > OFFERED && <span class="quiet">and {count(segments.length - OFFERED)} more in the table</span>}
            </div>
          )}
          <HistoryGraph history={history} first={first} end={end} slots={slots} transition={transition} segment={segment}
            onTransition={(position) => onSelect(position === null ? null : { kind: "transition", position })} />
          <ul class="legend history-legend">
            <li><span class="history-key is-round" aria-hidden="true" /> compaction that kept the order of rows</li>
            <li><span class="history-key is-square" aria-hidden="true" /> partition with a row map</li>
            <li><span class="history-key is-dashed" aria-hidden="true" /> a trim removes it</li>
            <li><span class="history-key is-live" aria-hidden="true" /> live fragments</li>
            <li><span class="swatch swatch-any" aria-hidden="true" /> built from it; stitched: covers it through the history</li>
          </ul>
          <h3>Transitions</h3>
          <Transitions history={history} first={first} end={end} chosen={transition} onSelect={onSelect} />
          {pages > 1 && (
            <div class="pager">
              <button type="button" class="button small" disabled={at === 0} onClick={() => setPage(at - 1)}>Previous</button>
              <span>{plural(transitions.length, "transition")}, page {count(at + 1)} of {count(pages)}</span>
              <button type="button" class="button small" disabled={at >= pages - 1} onClick={() => setPage(at + 1)}>Next</button>
            </div>
          )}
        </>
      )}
      <h3>Segments</h3>
      <Segments history={history} slots={slots} chosen={segment} onSegment={select} />
    </div>
  );
}

const UPKEEP_BUTTONS = [["trim", "Trim…"], ["prune", "Prune…"], ["gc", "Collect row maps…"]] as const;

function Transitions({ history, first, end, chosen, onSelect }: { history: HistoryDocument; first: number; end: number; chosen: number | null; onSelect: (s: Selection | null) => void }): JSX.Element {
  return (
    <div class="table-scroll history-table" tabIndex={0} role="region" aria-label="Transitions">
      <table>
        <thead><tr><th scope="col" class="num">at</th><th scope="col">kind</th><th scope="col">from</th><th scope="col">to</th><th scope="col">a trim</th><th scope="col">why</th></tr></thead>
        <tbody>
          {history.transitions.slice(first, end).map((one) => (
            <tr key={one.position} class={one.position === chosen ? "is-chosen" : ""}>
              <td class="num"><button type="button" class="link" onClick={() => onSelect({ kind: "transition", position: one.position })}>{one.position}</button></td>
              <td>{kindName(one.kind)}</td><td>{ranges(one.sources.map((d) => d.id), IDS)}</td><td>{ranges(one.destinations.map((d) => d.id), IDS)}</td>
              <td>{one.kept ? "keeps it" : <b>removes it</b>}</td>
              <td class="history-why">{one.why.length === 0 ? "no segment needs it any more" : one.why.map((why) => <p key={why}>{name(why)}</p>)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Segments({ history, slots, chosen, onSegment }: { history: HistoryDocument; slots: readonly number[]; chosen: number | null; onSegment: (s: number) => void }): JSX.Element {
  const [page, setPage] = useState(0);
  const { segments } = history;
  if (segments.length === 0) return <p class="quiet">No index has a segment: nothing has to be translated.</p>;
  const pages = Math.ceil(segments.length / SEGMENTS);
  const first = Math.min(page, pages - 1) * SEGMENTS;
  const idsOf = (ids: readonly number[] | null) => (ids === null ? "not recorded" : ids.length === 0 ? "–" : ranges(ids, IDS));
  return (
    <>
      <div class="table-scroll history-table" tabIndex={0} role="region" aria-label="Segments of the history">
        <table>
          <thead><tr><th scope="col">index</th><th scope="col">segment</th><th scope="col">built from</th><th scope="col">covers</th><th scope="col">state</th><th scope="col">through</th><th scope="col">why</th></tr></thead>
          <tbody>
            {segments.slice(first, first + SEGMENTS).map((one, i) => (
              <tr key={one.uuid} class={first + i === chosen ? "is-chosen" : ""}>
                <td>{name(one.index)}</td>
                <td><button type="button" class="link" title={one.uuid} onClick={() => onSegment(first + i)}><Swatch slot={slots[first + i] ?? 0} /> {shortUuid(one.uuid)}</button></td>
                <td>{idsOf(one.stored)}</td><td>{idsOf(one.derived)}</td><td>{one.state}</td><td>{one.path.length === 0 ? "–" : ranges(one.path, IDS)}</td>
                <td class="history-why">{one.reason !== null && <p>{name(one.reason)}</p>}{one.why !== one.reason && <p>{name(one.why)}</p>}{!one.kept && <p><b>A prune removes it.</b></p>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {pages > 1 && (
        <div class="pager">
          <button type="button" class="button small" disabled={page === 0} onClick={() => setPage(page - 1)}>Previous</button>
          <span>{plural(segments.length, "segment")}, page {count(page + 1)} of {count(pages)}</span>
          <button type="button" class="button small" disabled={page >= pages - 1} onClick={() => setPage(page + 1)}>Next</button>
        </div>
      )}
    </>
  );
}

/** What the details pane says of a transition. */
export function TransitionDetails({ session, position, target }: { session: Session; position: number; target: string | null }): JSX.Element {
  const version = session.table?.show.version ?? 0;
  const { asked, ask } = useAsked<HistoryDocument>(`${target}/${version}`);
  const look = () => ask((signal) => session.history(signal));
  useEffect(look, [target, version]);
  if (asked.is === "failed") return <ErrorPanel failure={asked.error} target={target} onRetry={look} />;
  if (asked.is !== "answered") return <p><Bone width="48ch" /></p>;
  const one = asked.answer.transitions[position];
  if (!one) return <p class="quiet">This version’s history has no transition {position}.</p>;
  const rows = (digests: typeof one.sources) => {
    const known = digests.every((d) => d.physical_rows !== null);
    const deleted = digests.reduce((sum, d) => sum + (d.deleted_rows ?? 0), 0);
    return known ? `${plural(digests.reduce((sum, d) => sum + (d.physical_rows ?? 0), 0), "row")}${deleted > 0 ? `, ${count(deleted)} of them deleted` : ""}` : "rows not recorded";
  };
  const ids = (digests: typeof one.sources) => digests.map((d) => d.id);
  const map = asked.answer.row_maps.find((known) => known.map_id === one.map_id);
  const translating = asked.answer.segments.filter((segment) => segment.path.includes(position));
  return (
    <div class="facts">
      <h3>Transition {count(position)}: {kindName(one.kind)}{one.kept ? "" : ", not needed any more"}</h3>
      <dl>
        <div><dt>from</dt><dd><Copyable value={ids(one.sources).join(" ")} label="the fragment ids">{ranges(ids(one.sources), 12)}</Copyable> <small>{rows(one.sources)}</small></dd></div>
        <div><dt>to</dt><dd><Copyable value={ids(one.destinations).join(" ")} label="the fragment ids">{ranges(ids(one.destinations), 12)}</Copyable> <small>{rows(one.destinations)}</small></dd></div>
        <div><dt>record</dt><dd>{count(one.record)}</dd></div>
        {one.map_id && <div><dt>row map</dt><dd><Copyable value={one.map_id} label="the row map's id" /> <small>{bytes(map?.size)}</small></dd></div>}
        <div><dt>segments through it</dt><dd>{count(translating.length)}</dd></div>
        <div class="wide"><dt>{one.kept ? "why it stays" : "why a trim removes it"}</dt><dd class="history-reasons">{one.why.length === 0 ? "No segment needs it any more." : one.why.map((why) => <p key={why}>{name(why)}</p>)}</dd></div>
      </dl>
    </div>
  );
}
