// What lies under the pointer, in words.

import type { JSX } from "preact";
import { bytes, count, name, plural, shortUuid } from "../lib/format.js";
import { apartIn, UNKNOWN } from "./model.js";
import type { Groups } from "./groups.js";
import type { Layout } from "./model.js";

/** `border`: the pointer is between fragment positions i and i + 1, and the question is what keeps the two apart. */
export function HoverCard({ layout, groups, i, lane, border, x, y, width }: { layout: Layout; groups: Groups | null; i: number; lane: number; border: boolean; x: number; y: number; width: number }): JSX.Element {
  const { ids, physical_rows: physical, deleted_rows: deleted, bytes: size } = layout.columns;
  const right = x > width / 2;
  const known = (value: number | undefined) => (value === undefined || Number.isNaN(value) ? null : value);
  const found = layout.lanes[lane];
  const cover = found?.cover[i];
  const segment = found && cover !== undefined && cover >= 0 ? found.segments[cover] : undefined;
  const style = { left: right ? "auto" : `${x + 14}px`, right: right ? `${width - x + 14}px` : "auto", top: `${y + 14}px` };
  if (border) {
    const apart = apartIn(layout, i);
    return (
      <div class="hover-card" role="presentation" style={style}>
        <b>between {ids[i]} and {ids[i + 1]}</b>
        {apart.length === 0
          ? <span>the same segments cover both{groups && (groups.group[i]! >= 0 && groups.group[i] === groups.group[i + 1] ? ": a compaction merges them" : ", but a compaction leaves them apart")}</span>
          : <><span>other segments cover them in {apart.slice(0, 3).map(name).join(", ")}{apart.length > 3 && ` and ${count(apart.length - 3)} more`}:</span><span>no compaction merges them</span></>}
        <span class="hover-segment">shift-click both for the rule</span>
      </div>
    );
  }
  return (
    <div class="hover-card" role="presentation" style={style}>
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
