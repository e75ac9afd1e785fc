// Where each lane lies, from top to bottom. The labels beside the canvas and the canvas itself read the same list.

export type LaneKind = "rows" | "deleted" | "index" | "groups" | "axis";

export interface LaneBox {
  kind: LaneKind;
  /** Position among the index lanes; -1 for the others. */
  lane: number;
  y: number;
  height: number;
}

const HEIGHTS: Record<LaneKind, number> = { rows: 48, deleted: 12, index: 28, groups: 20, axis: 20 };
const GAP = 8;

export function laneBoxes(indexLanes: number, withGroups: boolean): LaneBox[] {
  const boxes: LaneBox[] = [];
  let y = 4;
  const add = (kind: LaneKind, lane: number, gap = GAP) => {
    boxes.push({ kind, lane, y, height: HEIGHTS[kind] });
    y += HEIGHTS[kind] + gap;
  };
  add("rows", -1, 4);
  add("deleted", -1, 12);
  for (let i = 0; i < indexLanes; i += 1) add("index", i);
  if (withGroups) add("groups", -1);
  add("axis", -1, 0);
  return boxes;
}

export function lanesHeight(boxes: readonly LaneBox[]): number {
  const last = boxes[boxes.length - 1];
  return last ? last.y + last.height + 4 : 0;
}

/** The lane under a vertical position; the gap below a lane belongs to it. */
export function laneAtY(boxes: readonly LaneBox[], y: number): LaneBox | null {
  for (const box of boxes) if (y >= box.y - GAP / 2 && y < box.y + box.height + GAP / 2) return box;
  return null;
}
