// The changes from the version before to the one on screen: fragments, deletions, segments.

import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { OpenedTable } from "../engine/protocol.js";
import { useAsked } from "../inside/useAsked.js";
import { count, name, plural, ranges, shortUuid } from "../lib/format.js";
import { ErrorPanel } from "../parts/ErrorPanel.js";
import { Bone, Icon } from "../parts/basics.js";
import type { Session } from "../session.js";
import { diffVersions, isSame } from "./diff.js";
import type { IndexChange } from "./diff.js";

const SHOWN = 12;

export function VersionDiffPanel({ session, table, target, onClose }: { session: Session; table: OpenedTable; target: string | null; onClose: () => void }): JSX.Element {
  const list = table.versions ?? [];
  const at = list.findIndex((v) => v.version === table.show.version);
  const before = at > 0 ? list[at - 1]!.version : null;
  const { asked, ask } = useAsked<OpenedTable>(`${table.show.version}/${before}`);
  const look = () => {
    if (before !== null) ask((signal) => session.version(before, signal));
  };
  useEffect(look, [before, table.show.version]);
  const diff = useMemo(() => (asked.is === "answered" ? diffVersions(asked.answer, table) : null), [asked, table]);
  return (
    <section class="panel changes" aria-labelledby="changes-title" aria-busy={asked.is === "asking"}>
      <div class="panel-head">
        <h2 id="changes-title">{before === null ? `Version ${count(table.show.version)} is the oldest that is kept` : `Changes from version ${count(before)} to ${count(table.show.version)}`}</h2>
        <button type="button" class="icon-button small" aria-label="Close the changes" onClick={onClose}><Icon name="close" /></button>
      </div>
      {asked.is === "failed" && <ErrorPanel failure={asked.error} target={target} onRetry={look} />}
      {before !== null && asked.is !== "failed" && !diff && <p><Bone width="48ch" /></p>}
      {diff && isSame(diff) && <p class="quiet">Same fragments, same segments. What changed is not shown here: the schema, settings or metadata.</p>}
      {diff && !isSame(diff) && (
        <ul class="change-list">
          {diff.rows.before !== diff.rows.after && <li><span>rows</span><span>{count(diff.rows.before)} → <b>{count(diff.rows.after)}</b></span></li>}
          {diff.addedFragments.length > 0 && <li><span class="change-added">+ {plural(diff.addedFragments.length, "fragment")}</span><span>{ranges(diff.addedFragments, SHOWN)}</span></li>}
          {diff.removedFragments.length > 0 && <li><span class="change-removed">− {plural(diff.removedFragments.length, "fragment")}</span><span>{ranges(diff.removedFragments, SHOWN)}</span></li>}
          {diff.deletions.length > 0 && (
            <li><span>deletions</span><span>{diff.deletions.slice(0, SHOWN).map((d) => `fragment ${d.fragment}: ${count(d.before)} → ${count(d.after)}`).join(", ")}{diff.deletions.length > SHOWN && ` and ${count(diff.deletions.length - SHOWN)} more`}</span></li>
          )}
          {diff.indexes.map((change) => <li key={change.name}><span>{name(change.name)}</span><span>{sentence(change)}</span></li>)}
        </ul>
      )}
    </section>
  );
}

function sentence(change: IndexChange): string {
  const brief = (list: IndexChange["added"]) => `${list.slice(0, SHOWN).map((s) => `${shortUuid(s.uuid)} (${s.fragments === null ? "coverage unknown" : plural(s.fragments, "fragment")})`).join(", ")}${list.length > SHOWN ? ` and ${count(list.length - SHOWN)} more` : ""}`;
  const parts: string[] = [];
  if (change.is === "removed") return `dropped, with ${plural(change.removed.length, "segment")}`;
  if (change.is === "added") parts.push("new");
  if (change.added.length > 0) parts.push(`+ ${brief(change.added)}`);
  if (change.removed.length > 0) parts.push(`− ${brief(change.removed)}`);
  for (const moved of change.moved.slice(0, SHOWN)) {
    parts.push(`${shortUuid(moved.uuid)} ${moved.lost.length > 0 ? `lost fragments ${ranges(moved.lost)}` : ""}${moved.lost.length > 0 && moved.gained.length > 0 ? " and " : ""}${moved.gained.length > 0 ? `gained fragments ${ranges(moved.gained)}` : ""}`);
  }
  return parts.join("; ");
}
