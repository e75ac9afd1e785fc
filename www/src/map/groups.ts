// What a compaction would rewrite together, as the planner says it.

import type { LayoutColumns } from "../engine/documents.js";

export interface Group {
  from: number;
  /** One past the last. */
  to: number;
  /** A small fragment alone: other segments cover its small neighbours, so a compaction leaves it as it is. */
  frozen: boolean;
}

export interface Groups {
  /** Ascending, and apart from each other. Fragments that stay for another reason are in none. */
  list: Group[];
  /** Per position how many of the groups before it are frozen. */
  frozenBefore: Int32Array;
  /** Per fragment position the group it is in, as the planner numbers them; -1: none. */
  group: Int32Array;
}

export function makeGroups({ group, frozen }: Pick<LayoutColumns, "group" | "frozen">): Groups {
  const list: Group[] = [];
  for (let i = 0; i < group.length; i += 1) {
    if (group[i]! < 0) {
      if (frozen[i]) list.push({ from: i, to: i + 1, frozen: true });
      continue;
    }
    const from = i;
    while (i + 1 < group.length && group[i + 1] === group[from]) i += 1;
    list.push({ from, to: i + 1, frozen: false });
  }
  const frozenBefore = new Int32Array(list.length + 1);
  list.forEach((one, g) => { frozenBefore[g + 1] = frozenBefore[g]! + (one.frozen ? 1 : 0); });
  return { list, frozenBefore, group };
}

/** The groups that touch [from, to), as [first, one past the last]. */
export function groupsIn({ list }: Groups, from: number, to: number): [number, number] {
  const first = search(list.length, (g) => list[g]!.to > from);
  return [first, Math.max(first, search(list.length, (g) => list[g]!.from >= to))];
}

/** The first of n positions that holds, where all behind it do. */
function search(n: number, holds: (at: number) => boolean): number {
  let [lo, hi] = [0, n];
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (holds(mid)) hi = mid;
    else lo = mid + 1;
  }
  return lo;
}
