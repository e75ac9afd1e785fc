// A reuse history as a graph: bundles of fragments, the transitions that joined and fanned them out, and which segment passes where.
// Pure. Fragments that share everything (who made them, who took them, which segments name them) are one bundle, so that a compaction
// of a thousand fragments stays a picture.

import type { HistoryDocument } from "../engine/documents.js";
import { firstFree, hash, SLOTS } from "../map/palette.js";

export type Transition = HistoryDocument["transitions"][number];
export type HistorySegment = HistoryDocument["segments"][number];

export interface Bundle {
  kind: "bundle";
  ids: number[];
  /** Position of the transition that made them and of the one that took them, where it is drawn. */
  from: number | null;
  to: number | null;
  /** Made or taken by a transition that is not drawn here. */
  earlier: boolean;
  later: boolean;
  live: boolean;
  /** Segments (positions in the document) that were built from all of them, or from some where bundles had to be put together. */
  stored: number[];
  /** Segments that cover them, live as they are, through transitions and not by name. */
  derived: number[];
  /** No segment needs them: all transitions beside them are removed by a trim, and they are not live. */
  ghost: boolean;
  x: number;
  y: number;
}

export interface Joint {
  kind: "joint";
  transition: Transition;
  /** Segments that pass through it. */
  passing: number[];
  x: number;
  y: number;
}

export interface Edge {
  bundle: Bundle;
  joint: Joint;
  /** Whether it leads into the transition. */
  into: boolean;
  /** Segments whose rows pass here. */
  passing: number[];
}

export interface HistoryGraph {
  bundles: Bundle[];
  joints: Joint[];
  edges: Edge[];
  /** Live fragments that no transition made or took and that are not drawn. */
  apart: number[];
  width: number;
  height: number;
}

export const NODE = { width: 140, height: 44 } as const;
/** Half the size of a transition's mark. */
export const MARK = 13;
const STEP = NODE.width + 132;
const ROW = NODE.height + 14;
const MARGIN = 16;
/** Bundles of one origin and one end that are told apart; the rest of them is put together. */
const BUNDLES = 8;

interface Place {
  column: number;
  /** Where it wants to be among its column. */
  wish: number;
  y: number;
}

/** The graph of the transitions [first, end) of a history. */
export function makeGraph(history: HistoryDocument, first: number, end: number): HistoryGraph {
  const shown = history.transitions.slice(first, end);
  const madeBy = new Map<number, number>();
  const takenBy = new Map<number, number>();
  for (const t of history.transitions) {
    for (const { id } of t.destinations) madeBy.set(id, t.position);
    for (const { id } of t.sources) if (!takenBy.has(id)) takenBy.set(id, t.position);
  }
  const drawn = new Map(shown.map((t) => [t.position, t]));
  const live = new Set(history.live);
  const wanted = new Set<number>();
  for (const t of shown) for (const { id } of [...t.sources, ...t.destinations]) wanted.add(id);
  const stored = naming(history.segments, (segment) => segment.stored, wanted);
  const covering = naming(history.segments, (segment) => segment.derived, wanted);

  const bundles = bundle([...wanted].sort((a, b) => a - b), (id) => {
    const from = madeBy.get(id) ?? null;
    const to = takenBy.get(id) ?? null;
    const own = stored.get(id) ?? [];
    return {
      from: from !== null && drawn.has(from) ? from : null, to: to !== null && drawn.has(to) ? to : null, earlier: from !== null && !drawn.has(from), later: to !== null && !drawn.has(to),
      live: live.has(id), stored: own, derived: (covering.get(id) ?? []).filter((s) => !own.includes(s)),
    };
  });
  const removed = (position: number | null) => position === null || drawn.get(position)?.kept === false;
  for (const one of bundles) one.ghost = !one.live && !one.earlier && !one.later && removed(one.from) && removed(one.to);

  const passing = passages(history, drawn);
  const joints = shown.map((transition): Joint => ({ kind: "joint", transition, passing: passing.through.get(transition.position) ?? [], x: 0, y: 0 }));
  const joint = new Map(joints.map((one) => [one.transition.position, one]));
  const edges: Edge[] = [];
  for (const one of bundles) {
    const into = one.to === null ? undefined : joint.get(one.to);
    const out = one.from === null ? undefined : joint.get(one.from);
    if (into) edges.push({ bundle: one, joint: into, into: true, passing: into.passing.filter((s) => one.ids.some((id) => passing.held[s]?.has(id))) });
    if (out) edges.push({ bundle: one, joint: out, into: false, passing: out.passing });
  }
  const { width, height } = place(bundles, joints, edges);
  return { bundles, joints, edges, apart: history.live.filter((id) => !madeBy.has(id) && !takenBy.has(id)), width, height };
}

/** Per fragment the segments that name it. */
function naming(segments: readonly HistorySegment[], ids: (segment: HistorySegment) => readonly number[] | null, wanted: ReadonlySet<number>): Map<number, number[]> {
  const found = new Map<number, number[]>();
  segments.forEach((segment, s) => {
    for (const id of ids(segment) ?? []) {
      if (!wanted.has(id)) continue;
      const list = found.get(id);
      if (list) list.push(s);
      else found.set(id, [s]);
    }
  });
  return found;
}

type Facts = Omit<Bundle, "kind" | "ids" | "ghost" | "x" | "y">;

function bundle(ids: readonly number[], factsOf: (id: number) => Facts): Bundle[] {
  const same = new Map<string, Bundle>();
  const perEnds = new Map<string, Bundle[]>();
  for (const id of ids) {
    const facts = factsOf(id);
    const ends = `${facts.from}/${facts.to}/${facts.earlier}/${facts.later}/${facts.live}`;
    const key = `${ends}/${facts.stored.join()}/${facts.derived.join()}`;
    const found = same.get(key);
    if (found) {
      found.ids.push(id);
      continue;
    }
    const siblings = perEnds.get(ends) ?? [];
    perEnds.set(ends, siblings);
    const last = siblings[BUNDLES - 1];
    if (last) {
      last.ids.push(id);
      last.stored = union(last.stored, facts.stored);
      last.derived = union(last.derived, facts.derived);
      same.set(key, last);
      continue;
    }
    const made: Bundle = { kind: "bundle", ids: [id], ...facts, ghost: false, x: 0, y: 0 };
    siblings.push(made);
    same.set(key, made);
  }
  return [...perEnds.values()].flat();
}

function union(a: readonly number[], b: readonly number[]): number[] {
  return [...new Set([...a, ...b])].sort((x, y) => x - y);
}

/** Which segments pass which drawn transition, and the fragments whose rows each of them holds on its way. */
function passages(history: HistoryDocument, drawn: ReadonlyMap<number, Transition>): { through: Map<number, number[]>; held: (Set<number> | undefined)[] } {
  const through = new Map<number, number[]>();
  const held = history.segments.map((segment, s) => {
    if (segment.path.length === 0) return undefined;
    const rows = new Set(segment.stored ?? []);
    for (const position of segment.path) {
      const list = through.get(position);
      if (list) list.push(s);
      else through.set(position, [s]);
      for (const { id } of drawn.get(position)?.destinations ?? history.transitions[position]?.destinations ?? []) rows.add(id);
    }
    return rows;
  });
  return { through, held };
}

/**
 * Time runs to the right: a transition stands right of all that made its sources. What hangs together is placed together, in the order of
 * the history; within a column everything goes where its neighbours to the left are.
 */
function place(bundles: readonly Bundle[], joints: readonly Joint[], edges: readonly Edge[]): { width: number; height: number } {
  const places = new Map<Bundle | Joint, Place>();
  const intoOf = new Map<Joint, Bundle[]>();
  const outOf = new Map<Joint, Bundle[]>();
  for (const { bundle: one, joint, into } of edges) {
    const map = into ? intoOf : outOf;
    const list = map.get(joint);
    if (list) list.push(one);
    else map.set(joint, [one]);
  }
  const depth = new Map<number, number>();
  for (const joint of joints) {
    let column = 0;
    for (const one of intoOf.get(joint) ?? []) if (one.from !== null) column = Math.max(column, (depth.get(one.from) ?? 0) + 1);
    depth.set(joint.transition.position, column);
    places.set(joint, { column, wish: 0, y: 0 });
  }
  for (const one of bundles) {
    const column = one.from !== null ? (depth.get(one.from) ?? 0) + 1 : one.to !== null ? depth.get(one.to) ?? 0 : 0;
    places.set(one, { column, wish: one.ids[0] ?? 0, y: 0 });
  }
  let top = MARGIN;
  let deepest = 0;
  for (const island of islands(bundles, joints, edges)) {
    const columns: Bundle[][] = [];
    for (const one of island.bundles) (columns[places.get(one)!.column] ??= []).push(one);
    const tallest = Math.max(1, ...columns.map((column) => column?.length ?? 0));
    const middle = top + (tallest * ROW) / 2;
    for (let c = 0; c < columns.length; c += 1) {
      const column = columns[c] ?? [];
      for (const one of column) {
        const at = places.get(one)!;
        const maker = one.from === null ? undefined : island.joints.get(one.from);
        // What was not made here has no place to be near to; it keeps the order of its ids, behind those that have one.
        at.wish = maker ? places.get(maker)!.y : Number.MAX_SAFE_INTEGER;
      }
      column.sort((a, b) => places.get(a)!.wish - places.get(b)!.wish || a.ids[0]! - b.ids[0]!);
      column.forEach((one, i) => {
        places.get(one)!.y = middle + (i - (column.length - 1) / 2) * ROW;
      });
      // Transitions of this column stand at the middle of their sources, and never on top of each other.
      const here = [...island.joints.values()].filter((joint) => places.get(joint)!.column === c);
      for (const joint of here) {
        const sources = intoOf.get(joint) ?? [];
        places.get(joint)!.y = sources.length === 0 ? middle : sources.reduce((sum, one) => sum + places.get(one)!.y, 0) / sources.length;
      }
      here.sort((a, b) => places.get(a)!.y - places.get(b)!.y || a.transition.position - b.transition.position);
      for (let i = 1; i < here.length; i += 1) {
        const [before, at] = [places.get(here[i - 1]!)!, places.get(here[i]!)!];
        at.y = Math.max(at.y, before.y + MARK * 2 + 20);
      }
      deepest = Math.max(deepest, c);
    }
    let bottom = top + tallest * ROW;
    for (const joint of island.joints.values()) bottom = Math.max(bottom, places.get(joint)!.y + MARK + 20);
    top = bottom + MARGIN;
  }
  for (const one of bundles) {
    const at = places.get(one)!;
    one.x = MARGIN + at.column * STEP;
    one.y = at.y - NODE.height / 2;
  }
  for (const joint of joints) {
    const at = places.get(joint)!;
    joint.x = MARGIN + at.column * STEP + (STEP + NODE.width) / 2;
    joint.y = at.y;
  }
  return { width: MARGIN * 2 + deepest * STEP + NODE.width, height: top };
}

/** Parts that no edge connects, in the order of their first transition. */
function islands(bundles: readonly Bundle[], joints: readonly Joint[], edges: readonly Edge[]): { bundles: Bundle[]; joints: Map<number, Joint> }[] {
  const parent = new Map<Bundle | Joint, Bundle | Joint>();
  const root = (one: Bundle | Joint): Bundle | Joint => {
    let at = one;
    for (let up = parent.get(at); up !== undefined && up !== at; up = parent.get(at)) at = up;
    parent.set(one, at);
    return at;
  };
  for (const { bundle: one, joint } of edges) parent.set(root(one), root(joint));
  const found = new Map<Bundle | Joint, { bundles: Bundle[]; joints: Map<number, Joint> }>();
  const of = (one: Bundle | Joint) => {
    const key = root(one);
    let island = found.get(key);
    if (!island) {
      island = { bundles: [], joints: new Map() };
      found.set(key, island);
    }
    return island;
  };
  for (const joint of joints) of(joint).joints.set(joint.transition.position, joint);
  for (const one of bundles) of(one).bundles.push(one);
  return [...found.values()];
}

/**
 * A colour per segment: that of the map where no other segment of this picture has it, since here the segments of all indexes meet.
 * Those that a prune removes choose last.
 */
export function ownColours(segments: readonly HistorySegment[], onMap: (uuid: string) => number | undefined): number[] {
  const taken = new Set<number>();
  const slots: number[] = [];
  const order = segments.map((_, s) => s).sort((a, b) => Number(segments[b]!.kept) - Number(segments[a]!.kept) || a - b);
  for (const s of order) {
    const uuid = segments[s]!.uuid.toLowerCase();
    const wanted = onMap(uuid) ?? hash(uuid) % SLOTS;
    slots[s] = firstFree(wanted, (slot) => !taken.has(slot)) ?? wanted;
    taken.add(slots[s]);
  }
  return slots;
}

/** Fragment ids in the space of a node: "0–3, 7" or "0 … 98". */
export function briefIds(ids: readonly number[]): string {
  const runs: [number, number][] = [];
  for (const id of ids) {
    const last = runs[runs.length - 1];
    if (last && last[1] + 1 === id) last[1] = id;
    else runs.push([id, id]);
    if (runs.length > 2) return `${ids[0]} … ${ids[ids.length - 1]}`;
  }
  return runs.map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`)).join(", ");
}

/** What a kind of transition is called. */
export function kindName(kind: Transition["kind"]): string {
  return kind === "ordered_compaction" ? "ordered compaction" : kind === "stable_partition" ? "stable partition" : "version-0 compaction";
}
