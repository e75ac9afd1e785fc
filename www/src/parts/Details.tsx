// What is selected, with values to copy.

import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { Pair } from "../engine/documents.js";
import { TransitionDetails } from "../history/HistoryView.js";
import { Inside } from "../inside/Inside.js";
import { useAsked } from "../inside/useAsked.js";
import { bytes, count, moment, name, percent, plural, ranges, shortUuid } from "../lib/format.js";
import type { Selection } from "../lib/url.js";
import { positionOf } from "../map/axis.js";
import { coveringSet } from "../map/model.js";
import type { Lane, LaneSegment, Layout } from "../map/model.js";
import type { Session } from "../session.js";
import { indexedText } from "./IndexList.js";
import { Bone, Copyable, Swatch } from "./basics.js";

export function Details({ session, layout, selection, target, onSelect }: {
  session: Session; layout: Layout | null; selection: Selection | null; target: string | null; onSelect: (s: Selection | null) => void;
}): JSX.Element {
  const lane = layout && selection ? chosenLane(layout, selection) : undefined;
  return (
    <section class="panel details" aria-labelledby="details-title" aria-live="polite">
      <h2 id="details-title">Details</h2>
      {layout && selection ? <Chosen session={session} layout={layout} selection={selection} target={target} onSelect={onSelect} /> : (
        <p class="quiet">Click a fragment or a segment on the map. Shift-click a second fragment to see whether the two may be merged.</p>
      )}
      {layout && lane && <Inside key={lane.index.name} session={session} layout={layout} index={lane.index} uuid={selection?.kind === "segment" ? selection.uuid : null} target={target} />}
    </section>
  );
}

/** The index that is selected, or whose segment is. */
function chosenLane(layout: Layout, selection: Selection): Lane | undefined {
  if (selection.kind === "index") return layout.lanes.find((lane) => lane.index.name === selection.name);
  const place = selection.kind === "segment" ? layout.byUuid.get(selection.uuid) : undefined;
  return place && layout.lanes[place.lane];
}

function Chosen({ session, layout, selection, target, onSelect }: { session: Session; layout: Layout; selection: Selection; target: string | null; onSelect: (s: Selection | null) => void }): JSX.Element {
  if (selection.kind === "fragment") return <FragmentDetails layout={layout} id={selection.id} onSelect={onSelect} />;
  if (selection.kind === "transition") return <TransitionDetails session={session} position={selection.position} target={target} />;
  if (selection.kind === "pair") return <PairDetails session={session} layout={layout} a={selection.a} b={selection.b} />;
  if (selection.kind === "segment") {
    const lane = chosenLane(layout, selection);
    const segment = lane?.segments[layout.byUuid.get(selection.uuid)!.segment];
    if (!lane || !segment) return <p class="quiet">Segment {shortUuid(selection.uuid)} is not part of this version.</p>;
    return <SegmentDetails lane={lane} segment={segment} />;
  }
  const lane = chosenLane(layout, selection);
  return lane ? <IndexDetails lane={lane} /> : <p class="quiet">There is no index “{name(selection.name)}” in this version.</p>;
}

function Facts({ title, children }: { title: ComponentChildren; children: ComponentChildren }): JSX.Element {
  return <div class="facts"><h3>{title}</h3><dl>{children}</dl></div>;
}

function Fact({ label, children, wide }: { label: string; children: ComponentChildren; wide?: boolean }): JSX.Element {
  return <div class={wide ? "wide" : ""}><dt>{label}</dt><dd>{children}</dd></div>;
}

function FragmentDetails({ layout, id, onSelect }: { layout: Layout; id: number; onSelect: (s: Selection | null) => void }): JSX.Element {
  const i = positionOf(layout.columns.ids, id);
  if (i < 0) return <p class="quiet">Fragment {id} is not part of this version.</p>;
  const { physical_rows: physical, deleted_rows: deleted, bytes: size, files } = layout.columns;
  const known = (value: number | undefined) => (value === undefined || Number.isNaN(value) ? null : value);
  const p = known(physical[i]);
  const d = known(deleted[i]);
  return (
    <Facts title={<>Fragment <Copyable value={String(id)} label="the fragment id" /></>}>
      <Fact label="live rows">{p === null || d === null ? "unknown" : count(p - d)}</Fact>
      <Fact label="deleted">{count(d)}{p && d ? ` (${percent(Math.floor((d / p) * 10000) / 100)})` : ""}</Fact>
      <Fact label="files">{count(files[i])}</Fact>
      <Fact label="size">{bytes(known(size[i]))}</Fact>
      <Fact label="covered by" wide>
        <ul class="cover-list">
          {coveringSet(layout, i).map(({ index, segment, unknown }) => (
            <li key={index}>
              <span class="cover-index">{name(index)}</span>
              {segment
                ? <button type="button" class="link" onClick={() => onSelect({ kind: "segment", uuid: segment.uuid.toLowerCase() })}><Swatch slot={segment.colour} /> {shortUuid(segment.uuid)}</button>
                : <span class="quiet"><span class={`swatch ${unknown ? "swatch-unknown" : "swatch-hatch"}`} aria-hidden="true" /> {unknown ? "unknown" : "not indexed"}</span>}
            </li>
          ))}
        </ul>
        {layout.lanes.length === 0 && "no index"}
      </Fact>
    </Facts>
  );
}

/** Would a compaction merge two fragments? The planner says the rule; the sets of segments are shown beside it at once. */
function PairDetails({ session, layout, a, b }: { session: Session; layout: Layout; a: number; b: number }): JSX.Element {
  const { asked, ask } = useAsked<Pair>(`${session.table?.show.version ?? ""}/${a}/${b}`);
  useEffect(() => ask((signal) => session.explainPair(a, b, signal)), [a, b, session.table?.show.version]);
  const i = positionOf(layout.columns.ids, a);
  const j = positionOf(layout.columns.ids, b);
  if (i < 0 || j < 0) return <p class="quiet">Fragment {i < 0 ? a : b} is not part of this version.</p>;
  const set = (at: number) => coveringSet(layout, at);
  const differs = set(i).filter((mine, l) => mine.segment !== set(j)[l]?.segment);
  const pair = asked.is === "answered" ? asked.answer : null;
  const setText = (at: number) => set(at).map(({ segment, unknown }) => (segment ? shortUuid(segment.uuid) : unknown ? "unknown" : "none")).join(", ");
  return (
    <div class="facts">
      <h3>{pair === null ? `Fragments ${a} and ${b}` : pair.joined ? `Fragments ${a} and ${b} may be merged` : `Why won’t fragments ${a} and ${b} be merged?`}</h3>
      {pair ? <p class="pair-why">{name(pair.why)}</p> : asked.is === "failed" ? <p class="pair-why">{name(asked.error.message)}</p> : <p><Bone width="56ch" /></p>}
      {differs.length > 0 && (
        <p>Fragment {a} lies in {"{"}{setText(i)}{"}"}, fragment {b} in {"{"}{setText(j)}{"}"}. They differ in {differs.map((d) => name(d.index)).join(", ")}: a compaction only merges neighbours that the same set of segments covers.</p>
      )}
    </div>
  );
}

function SegmentDetails({ lane, segment }: { lane: Lane; segment: LaneSegment }): JSX.Element {
  const { info } = segment;
  return (
    <Facts title={<><Swatch slot={segment.colour} unknown={segment.unknown} /> Segment <Copyable value={info.uuid} label="the segment's uuid">{info.uuid}</Copyable></>}>
      <Fact label="index">{name(lane.index.name)}</Fact>
      <Fact label="method">{lane.index.type}</Fact>
      <Fact label="live rows">{segment.unknown ? "unknown" : count(segment.rows)}</Fact>
      <Fact label="size">{bytes(info.size_bytes)}</Fact>
      <Fact label="built at">version {count(info.dataset_version)}</Fact>
      <Fact label="created">{moment(info.created_at)}</Fact>
      <Fact label="format">{info.index_version === null ? "unknown" : count(info.index_version)}</Fact>
      <Fact label="fragments" wide>
        {info.effective_fragment_ids === null ? "not recorded: nobody can tell without opening the segment" : (
          <Copyable value={info.effective_fragment_ids.join(" ")} label="the fragment ids">{plural(segment.fragments, "fragment")}: {ranges(info.effective_fragment_ids, 12)}</Copyable>
        )}
      </Fact>
      {(info.retired_fragment_ids?.length ?? 0) > 0 && <Fact label="retired" wide>{ranges(info.retired_fragment_ids ?? [], 12)}</Fact>}
      {info.status_reason && <Fact label="status" wide>{info.status}: {info.status_reason}</Fact>}
    </Facts>
  );
}

function IndexDetails({ lane }: { lane: Lane }): JSX.Element {
  const { index } = lane;
  const missing = index.unindexed_fragments;
  return (
    <Facts title={<>Index <Copyable value={index.name} label="the index name">{name(index.name)}</Copyable></>}>
      <Fact label="method">{index.type}</Fact>
      <Fact label="column"><Copyable value={index.field_names.join(", ")} label="the column">{name(index.field_names.join(", "))}</Copyable></Fact>
      <Fact label="indexed_percent">{indexedText(index)}</Fact>
      <Fact label="num_segments">{count(index.num_segments)}</Fact>
      <Fact label="size_bytes">{bytes(index.size_bytes)}</Fact>
      <Fact label="rows indexed">{count(index.num_rows_indexed)}</Fact>
      <Fact label="rows not indexed">{count(index.num_rows_unindexed)}</Fact>
      <Fact label="not indexed" wide>
        {!missing ? "unknown" : missing.length === 0 ? "no fragment" : (
          <Copyable value={missing.join(" ")} label="the fragment ids">{plural(missing.length, "fragment")}: {ranges(missing, 12)}</Copyable>
        )}
      </Fact>
    </Facts>
  );
}
