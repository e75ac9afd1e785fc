// The list of indexes with the columns of SHOW INDEXES, and the segments of the chosen one beneath it.

import type { JSX } from "preact";
import type { IndexInfo } from "../engine/documents.js";
import { bytes, count, name, percent, plural, ranges, shortUuid } from "../lib/format.js";
import type { Job } from "../jobs/choice.js";
import { canRefresh } from "../lib/health.js";
import type { Selection } from "../lib/url.js";
import type { Lane, Layout } from "../map/model.js";
import { Bone, Icon, latestOnly, Swatch } from "./basics.js";

export function IndexList({ layout, selection, old, onSelect, onJob }: {
  layout: Layout | null; selection: Selection | null; old: boolean; onSelect: (s: Selection | null) => void; onJob: (job: Job) => void;
}): JSX.Element {
  const open = layout ? openLane(layout, selection) : -1;
  return (
    <section class="panel indexes" aria-labelledby="indexes-title">
      <h2 id="indexes-title">Indexes</h2>
      {!layout && [0, 1, 2].map((i) => <div key={i} class="index-row"><Bone width="12ch" /><Bone width="100%" /><Bone width="18ch" /></div>)}
      {layout && layout.lanes.length === 0 && <p class="quiet">This table has no indexes. Queries scan every fragment.</p>}
      {layout && (
        <ul>
          {layout.lanes.map((lane, l) => (
            <li key={lane.index.name} class={`index-item${l === open ? " is-open" : ""}`}>
              <button type="button" class="index-row" aria-expanded={l === open} onClick={() => onSelect(l === open && selection?.kind === "index" ? null : { kind: "index", name: lane.index.name })}>
                <span class="index-name" title={lane.index.name}>{name(lane.index.name)}</span>
                <span class="index-percent">{indexedText(lane.index)}</span>
                <span class={`index-bar${lane.index.indexed_percent === null && lane.index.coverage_known ? " is-void" : lane.index.coverage_known ? "" : " is-unknown"}`}><span style={{ width: `${Math.max(0, Math.min(100, lane.index.indexed_percent ?? 0))}%` }} /></span>
                <span class="index-facts">
                  <span title={lane.index.field_names.join(", ")}>{name(lane.index.type)} on {name(lane.index.field_names.join(", "))}</span>
                  <span>{plural(lane.index.num_segments, "segment")}, {bytes(lane.index.size_bytes)}</span>
                </span>
              </button>
              {l === open && <Segments lane={lane} selection={selection} old={old} onSelect={onSelect} onJob={onJob} />}
            </li>
          ))}
        </ul>
      )}
      {layout && <div class="index-foot"><button type="button" class="button small block" {...latestOnly(old)} onClick={() => onJob({ kind: "create" })}><Icon name="plus" /> Create an index…</button><button type="button" class="button small block" {...latestOnly(old)} title={latestOnly(old).title ?? "Index files, row maps and transactions that no version names"} onClick={() => onJob({ kind: "orphans" })}>Find leftovers…</button></div>}
    </section>
  );
}

/** indexed_percent in words: null is a table without rows, and unknown coverage makes it a lower bound. */
export function indexedText(index: Pick<IndexInfo, "indexed_percent" | "coverage_known">): string {
  if (index.indexed_percent === null) return index.coverage_known ? "no rows" : "unknown";
  return `${index.coverage_known ? "" : "at least "}${percent(index.indexed_percent)}`;
}

function openLane(layout: Layout, selection: Selection | null): number {
  if (selection?.kind === "index") return layout.lanes.findIndex((lane) => lane.index.name === selection.name);
  if (selection?.kind === "segment") return layout.byUuid.get(selection.uuid)?.lane ?? -1;
  return -1;
}

/** Rows listed at once; a name with more segments than that says how many are left off. */
const LIMIT = 60;

function Segments({ lane, selection, old, onSelect, onJob }: {
  lane: Lane; selection: Selection | null; old: boolean; onSelect: (s: Selection | null) => void; onJob: (job: Job) => void;
}): JSX.Element {
  const chosen = selection?.kind === "segment" ? selection.uuid : null;
  return (
    <div class="segments">
      <table>
        <thead><tr><th scope="col">segment</th><th scope="col" class="num">fragments</th><th scope="col" class="num">size</th></tr></thead>
        <tbody>
          {lane.segments.slice(0, LIMIT).map((segment) => (
            <tr key={segment.uuid} class={chosen === segment.uuid.toLowerCase() ? "is-chosen" : ""}>
              <td><button type="button" class="link" title={segment.uuid} onClick={() => onSelect({ kind: "segment", uuid: segment.uuid.toLowerCase() })}><Swatch slot={segment.colour} unknown={segment.unknown} /> {shortUuid(segment.uuid)}</button></td>
              <td class="num" title={segment.info.effective_fragment_ids ? ranges(segment.info.effective_fragment_ids) : undefined}>{segment.unknown ? "unknown" : count(segment.fragments)}</td>
              <td class="num">{bytes(segment.info.size_bytes)}</td>
            </tr>
          ))}
          {lane.uncovered > 0 && <tr class="uncovered-row"><td><span class="swatch swatch-hatch" aria-hidden="true" /> not indexed</td><td class="num">{count(lane.uncovered)}</td><td class="num">–</td></tr>}
        </tbody>
      </table>
      {lane.segments.length > LIMIT && <p class="quiet">and {count(lane.segments.length - LIMIT)} more segments; click one on the map to see it.</p>}
      <div class="button-row">
        {canRefresh(lane.index) && <button type="button" class="button small grow" {...latestOnly(old)} onClick={() => onJob({ kind: "refresh", index: lane.index.name })}>Refresh…</button>}
        {canRefresh(lane.index) && lane.segments.length > 1 && <button type="button" class="button small grow" {...latestOnly(old)} onClick={() => onJob({ kind: "merge", index: lane.index.name })}>Merge…</button>}
        <button type="button" class="button small grow" {...latestOnly(old)} onClick={() => onJob({ kind: "drop", index: lane.index.name })}>Drop…</button>
      </div>
      {!canRefresh(lane.index) && <p class="quiet">{name(lane.index.type)} indexes are refreshed with Lance's SDK (optimize_indices), not here.</p>}
    </div>
  );
}
