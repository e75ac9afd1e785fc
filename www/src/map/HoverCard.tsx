// What lies under the pointer, in words.

import type { JSX } from "preact";
import { bytes, count, name, plural, shortUuid } from "../lib/format.js";
import { UNKNOWN } from "./model.js";
import type { Layout } from "./model.js";

export function HoverCard({ layout, i, lane, x, y, width }: { layout: Layout; i: number; lane: number; x: number; y: number; width: number }): JSX.Element {
  const { ids, physical_rows: physical, deleted_rows: deleted, bytes: size } = layout.columns;
  const right = x > width / 2;
  const known = (value: number | undefined) => (value === undefined || Number.isNaN(value) ? null : value);
  const found = layout.lanes[lane];
  const cover = found?.cover[i];
  const segment = found && cover !== undefined && cover >= 0 ? found.segments[cover] : undefined;
  return (
    <div class="hover-card" role="presentation" style={{ left: right ? "auto" : `${x + 14}px`, right: right ? `${width - x + 14}px` : "auto", top: `${y + 14}px` }}>
      <b>fragment {ids[i]}</b>
      <span>{known(physical[i]) === null ? "rows not recorded" : plural(physical[i]!, "row")}, {count(known(deleted[i]))} deleted</span>
      <span>{bytes(known(size[i]))}</span>
      {found && (
        <span class="hover-segment">
          {segment ? `${name(found.index.name)}: segment ${shortUuid(segment.uuid)}, ${plural(segment.fragments, "fragment")}` : `${name(found.index.name)}: ${cover === UNKNOWN ? "coverage unknown" : "not indexed, scanned by every query"}`}
        </span>
      )}
    </div>
  );
}
