// What changed between two versions of a table, as the documents tell it. Pure.

import type { OpenedTable } from "../engine/protocol.js";

export interface IndexChange {
  name: string;
  is: "added" | "removed" | "changed";
  added: { uuid: string; fragments: number | null }[];
  removed: { uuid: string; fragments: number | null }[];
  /** Segments of both versions whose live coverage differs: fragments lost and gained. */
  moved: { uuid: string; lost: number[]; gained: number[] }[];
}

export interface VersionDiff {
  from: number;
  to: number;
  rows: { before: number | null; after: number | null };
  addedFragments: number[];
  removedFragments: number[];
  /** Fragments of both versions with more or fewer deleted rows; null where a version does not say. */
  deletions: { fragment: number; before: number | null; after: number | null }[];
  indexes: IndexChange[];
}

type Documents = Pick<OpenedTable, "show" | "columns">;

export function diffVersions(before: Documents, after: Documents): VersionDiff {
  const ids = idsOf(before);
  const later = idsOf(after);
  return {
    from: before.show.version,
    to: after.show.version,
    rows: { before: before.show.rows, after: after.show.rows },
    addedFragments: [...later.keys()].filter((id) => !ids.has(id)),
    removedFragments: [...ids.keys()].filter((id) => !later.has(id)),
    deletions: [...later].flatMap(([fragment, at]) => {
      const was = ids.get(fragment);
      if (was === undefined) return [];
      const [a, b] = [known(before.columns.deleted_rows[was]), known(after.columns.deleted_rows[at])];
      return a === b ? [] : [{ fragment, before: a, after: b }];
    }),
    indexes: indexChanges(before, after),
  };
}

/** Whether the two versions look the same from here: then only settings or schema changed. */
export function isSame(diff: VersionDiff): boolean {
  return diff.addedFragments.length + diff.removedFragments.length + diff.deletions.length + diff.indexes.length === 0;
}

function idsOf({ columns }: Documents): Map<number, number> {
  const found = new Map<number, number>();
  columns.ids.forEach((id, i) => found.set(id, i));
  return found;
}

function known(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}

type Segment = Documents["show"]["indices"][number]["segments"][number];

function indexChanges(before: Documents, after: Documents): IndexChange[] {
  const old = new Map(before.show.indices.map((index) => [index.name, index]));
  const changes: IndexChange[] = [];
  const brief = (segment: Segment) => ({ uuid: segment.uuid, fragments: segment.effective_fragment_ids?.length ?? null });
  for (const index of after.show.indices) {
    const was = old.get(index.name);
    old.delete(index.name);
    const mine = new Map((was?.segments ?? []).map((segment) => [segment.uuid, segment]));
    const change: IndexChange = { name: index.name, is: was ? "changed" : "added", added: [], removed: [], moved: [] };
    for (const segment of index.segments) {
      const earlier = mine.get(segment.uuid);
      mine.delete(segment.uuid);
      if (!earlier) change.added.push(brief(segment));
      else {
        const [a, b] = [new Set(earlier.effective_fragment_ids ?? []), new Set(segment.effective_fragment_ids ?? [])];
        const lost = [...a].filter((id) => !b.has(id));
        const gained = [...b].filter((id) => !a.has(id));
        if (lost.length + gained.length > 0) change.moved.push({ uuid: segment.uuid, lost, gained });
      }
    }
    change.removed = [...mine.values()].map(brief);
    if (!was || change.added.length + change.removed.length + change.moved.length > 0) changes.push(change);
  }
  for (const index of old.values()) changes.push({ name: index.name, is: "removed", added: [], removed: index.segments.map(brief), moved: [] });
  return changes;
}
