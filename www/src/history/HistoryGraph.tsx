// The picture of a history: fragments, the transitions between them, and every segment's way through.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { HistoryDocument } from "../engine/documents.js";
import { compactCount, count, plural, ranges } from "../lib/format.js";
import { SEGMENT_COLOURS, SEGMENT_EDGES, SLOTS } from "../map/palette.js";
import { briefIds, kindName, makeGraph, MARK, NODE } from "./graph.js";
import type { Bundle, Edge, HistoryGraph as Graph } from "./graph.js";

/** Lines drawn beside each other along one edge, and stripes in a node; more are told in the tables. */
const LINES = 4;
const STRIPES = 10;

/** The colours of a segment, both of them: the style sheet takes the one that stands out on its ground. */
export function colourOf(slot: number): JSX.CSSProperties {
  return { "--segment": SEGMENT_COLOURS[slot % SLOTS], "--segment-edge": SEGMENT_EDGES[slot % SLOTS] } as JSX.CSSProperties;
}

export function HistoryGraph({ history, first, end, slots, transition, segment, onTransition }: {
  history: HistoryDocument; first: number; end: number;
  /** Colour of each segment of the document. */
  slots: readonly number[];
  /** Position of the transition that is chosen, and position of the segment that is. */
  transition: number | null; segment: number | null;
  onTransition: (position: number | null) => void;
}): JSX.Element {
  const graph = useMemo(() => makeGraph(history, first, end), [history, first, end]);
  const region = useRef<HTMLDivElement>(null);
  const marks = useRef<(SVGGElement | null)[]>([]);
  const at = graph.joints.findIndex((joint) => joint.transition.position === transition);
  // What is chosen elsewhere (the table, the address) is brought into view.
  useEffect(() => {
    const chosen = graph.joints[at];
    const area = region.current;
    if (!chosen || !area) return;
    if (chosen.x - 80 < area.scrollLeft || chosen.x + 80 > area.scrollLeft + area.clientWidth) area.scrollLeft = chosen.x - area.clientWidth / 2;
    if (chosen.y - 40 < area.scrollTop || chosen.y + 40 > area.scrollTop + area.clientHeight) area.scrollTop = chosen.y - area.clientHeight / 2;
  }, [graph, at]);
  const keys = (event: KeyboardEvent, i: number) => {
    const last = graph.joints.length - 1;
    const to = { ArrowRight: i + 1, ArrowDown: i + 1, ArrowLeft: i - 1, ArrowUp: i - 1, Home: 0, End: last }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      marks.current[Math.min(last, Math.max(0, to))]?.focus();
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      const { position } = graph.joints[i]!.transition;
      onTransition(position === transition ? null : position);
    }
  };
  return (
    <div ref={region} class="history-scroll" tabIndex={0} role="region" aria-label="Graph of the history">
      <svg class={`history-graph${segment !== null ? " has-chosen" : ""}`} width={graph.width} height={graph.height} viewBox={`0 0 ${graph.width} ${graph.height}`} role="group" aria-label={`${plural(graph.joints.length, "transition")}, from left to right as they followed each other; the tables below hold the same`}>
        <g aria-hidden="true">
          {graph.edges.map((edge, i) => <Way key={i} edge={edge} slots={slots} segment={segment} />)}
          {graph.bundles.map((one) => <Node key={`${one.ids[0]}`} bundle={one} rows={rowsOf(graph, one)} slots={slots} segment={segment} />)}
        </g>
        {graph.joints.map((joint, i) => {
          const { position, kind, sources, destinations, kept } = joint.transition;
          const width = Math.max(MARK * 2, String(position).length * 8 + 12);
          const chosen = i === at;
          return (
            <g key={position} ref={(element) => { marks.current[i] = element; }} class={`history-joint${kept ? "" : " is-removed"}${chosen ? " is-chosen" : ""}`} transform={`translate(${joint.x} ${joint.y})`}
              role="button" tabindex={i === Math.max(0, at) ? 0 : -1} aria-pressed={chosen}
              aria-label={`Transition ${position}, ${kindName(kind)}, ${ranges(sources.map((d) => d.id))} to ${ranges(destinations.map((d) => d.id))}, ${kept ? "stays" : "a trim removes it"}`}
              onClick={() => onTransition(chosen ? null : position)} onKeyDown={(event) => keys(event, i)}>
              <rect class="history-mark" x={-width / 2} y={-MARK} width={width} height={MARK * 2} rx={kind === "stable_partition" ? 2 : MARK} />
              {kind === "stable_partition" && <rect class="history-mark-inner" x={-width / 2 + 3} y={-MARK + 3} width={width - 6} height={MARK * 2 - 6} rx={1} />}
              <text y={4} text-anchor="middle">{position}</text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}

function rowsOf(graph: Graph, one: Bundle): number | null {
  let sum = 0;
  const ids = new Set(one.ids);
  for (const joint of graph.joints) {
    const { position, sources, destinations } = joint.transition;
    if (position !== one.to && position !== one.from) continue;
    for (const digest of position === one.to ? sources : destinations) {
      if (!ids.delete(digest.id)) continue;
      if (digest.physical_rows === null) return null;
      sum += digest.physical_rows;
    }
  }
  return sum;
}

function Node({ bundle: one, rows, slots, segment }: { bundle: Bundle; rows: number | null; slots: readonly number[]; segment: number | null }): JSX.Element {
  const segments = [...one.stored.map((s) => ({ s, derived: false })), ...one.derived.map((s) => ({ s, derived: true }))];
  const shown = segments.slice(0, STRIPES);
  const width = (NODE.width - 16) / Math.max(1, shown.length);
  const lit = segment === null || segments.some(({ s }) => s === segment);
  const what = one.ids.length === 1 ? "" : `${count(one.ids.length)} · `;
  return (
    <g class={`history-node${one.live ? " is-live" : ""}${one.ghost ? " is-ghost" : ""}${lit ? "" : " is-dim"}`} transform={`translate(${one.x} ${one.y})`}>
      <title>{`${one.ids.length === 1 ? "fragment" : "fragments"} ${ranges(one.ids, 12)}: ${one.live ? "live" : "gone"}${one.earlier ? ", made by an earlier transition" : ""}${one.later ? ", taken by a later transition" : ""}`}</title>
      <rect class="history-box" width={NODE.width} height={NODE.height} rx={6} />
      <text class="history-ids" x={8} y={16}>{briefIds(one.ids)}</text>
      <text class="history-rows" x={8} y={30}>{what}{rows === null ? "rows unknown" : `${compactCount(rows)} ${rows === 1 ? "row" : "rows"}`}{one.ghost ? " · released" : ""}</text>
      {shown.map(({ s, derived }, i) => (
        <g key={s} style={colourOf(slots[s] ?? 0)} class={segment !== null && segment !== s ? "is-dim" : ""}>
          <rect class="history-stripe" x={8 + i * width} y={NODE.height - 9} width={Math.max(1, width - 1)} height={6} />
          {derived && <line class="history-stitch" x1={8 + i * width} x2={8 + (i + 1) * width - 1} y1={NODE.height - 6} y2={NODE.height - 6} />}
        </g>
      ))}
    </g>
  );
}

function Way({ edge, slots, segment }: { edge: Edge; slots: readonly number[]; segment: number | null }): JSX.Element {
  const { bundle: one, joint, into } = edge;
  const y = one.y + NODE.height / 2;
  const [x0, y0, x1, y1] = into ? [one.x + NODE.width, y, joint.x, joint.y] : [joint.x, joint.y, one.x, y];
  const bend = Math.min(60, (x1 - x0) * 0.55);
  const line = (shift: number) => `M${x0} ${y0 + shift}C${x0 + bend} ${y0 + shift} ${x1 - bend} ${y1 + shift} ${x1} ${y1 + shift}`;
  // The chosen segment is among those that are drawn, however many pass.
  const order = segment !== null && edge.passing.includes(segment) ? [segment, ...edge.passing.filter((s) => s !== segment)] : edge.passing;
  const shown = order.slice(0, LINES).sort((a, b) => a - b);
  const removed = joint.transition.kept ? "" : " is-removed";
  if (shown.length === 0) return <path class={`history-edge${removed}${segment === null ? "" : " is-dim"}`} d={line(0)} />;
  return (
    <>
      {shown.map((s, i) => (
        <path key={s} class={`history-edge has-segment${removed}${segment === null ? "" : segment === s ? " is-lit" : " is-dim"}`} style={colourOf(slots[s] ?? 0)} d={line((i - (shown.length - 1) / 2) * 4)} />
      ))}
    </>
  );
}

