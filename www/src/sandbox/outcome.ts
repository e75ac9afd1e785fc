// What was done to a sandbox table, in one sentence. Pure.

import type { ChangeReport, CompactionReport } from "../engine/documents.js";
import { count, plural } from "../lib/format.js";
import type { ActReport } from "./calls.js";

/** Null where the report says nothing that the table does not show. */
export function outcomeOf({ change, compaction, established, held, refused }: ActReport): string | null {
  if (refused) return `${refused.code}, nothing was changed.`;
  if (held) return `${plural(held.segments, "segment")} built over ${plural(held.fragments.length, "fragment")}, in no version.`;
  if (change) return changed(change);
  if (compaction) return compacted(compaction);
  return established.length > 0 ? `established {${established.join(", ")}}.` : null;
}

function changed({ kind, rows, fragments_added, fragments_changed, fragments_removed, version, version_before }: ChangeReport): string {
  if (version === version_before || rows === 0) return "No row meets that: nothing was changed.";
  const parts = [
    fragments_added.length > 0 ? `${plural(fragments_added.length, "fragment")} added` : "",
    fragments_changed.length > 0 ? `${plural(fragments_changed.length, "deletion vector")} written` : "",
    fragments_removed.length > 0 ? `${plural(fragments_removed.length, "fragment")} gone` : "",
  ].filter((part) => part !== "");
  return `${plural(rows, "row")} ${kind === "append" ? "appended" : `${kind}d`}: ${parts.join(", ")}. Version ${count(version)} is the latest.`;
}

function compacted({ transaction, fragments_removed, fragments_added, rows, deleted_rows, segments_remapped, version }: CompactionReport): string {
  if (transaction === null) return `There was nothing to rewrite. Version ${count(version)} is still the latest.`;
  const parts = [
    `${plural(rows, "row")} written again`,
    deleted_rows > 0 ? `${plural(deleted_rows, "deleted row")} gone` : "",
    segments_remapped > 0 ? `${plural(segments_remapped, "segment")} remapped` : "",
  ].filter((part) => part !== "");
  return `${plural(fragments_removed.length, "fragment")} became ${count(fragments_added.length)}: ${parts.join(", ")}.`;
}
