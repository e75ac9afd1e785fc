// What the search field finds: a fragment by id, a segment by the beginning of its uuid, an index by a part of its name.

import { positionOf } from "../map/axis.js";
import type { Layout } from "../map/model.js";
import type { Selection } from "./url.js";

export function find(layout: Layout, query: string): Selection | null {
  const text = query.trim().toLowerCase();
  if (text === "") return null;
  const number = /^(?:fragment\s+)?(\d{1,10})$/.exec(text);
  if (number) {
    const id = Number(number[1]);
    if (positionOf(layout.columns.ids, id) >= 0) return { kind: "fragment", id };
  }
  if (/^[0-9a-f-]{4,36}$/.test(text)) {
    for (const uuid of layout.byUuid.keys()) if (uuid.startsWith(text)) return { kind: "segment", uuid };
  }
  const names = layout.lanes.map((lane) => lane.index.name);
  const exact = names.find((name) => name.toLowerCase() === text);
  const part = exact ?? names.find((name) => name.toLowerCase().startsWith(text)) ?? names.find((name) => name.toLowerCase().includes(text));
  return part === undefined ? null : { kind: "index", name: part };
}
