// The documents about fragment reuse histories: what they say, the plans to shorten them, and what was done.
import type { Count, RequestCounts } from "./types.js";

/** A fragment when it was rewritten; counts are `null` where only ids are read (version 0). */
export interface FragmentDigest {
  id: Count;
  physical_rows: Count | null;
  deleted_rows: Count | null;
}

/** The document of `whetstone history` and of {@link Table.history}. */
export interface HistoryDocument {
  version: Count;
  /** Version of the history: 0, 1 or a newer one; `null` when the table has none. */
  index_version: Count | null;
  /** Whether everything in it is understood; if not, nothing is derived from it and nothing here changes it. */
  supported: boolean;
  /** Live fragments. */
  live: Count[];
  /** Each after those that made its sources. `kept`: a trim keeps it, for the reasons in `why`. */
  transitions: {
    position: Count;
    record: Count;
    kind: "ordered_compaction" | "stable_partition" | "legacy_version";
    sources: FragmentDigest[];
    destinations: FragmentDigest[];
    /** Row map of a partition; `null` for others. */
    map_id: string | null;
    kept: boolean;
    why: string[];
  }[];
  /** `stored`: what it was built from (`null`: not recorded); `derived`: live fragments it covers; `path`: transitions on the way. */
  segments: {
    index: string;
    uuid: string;
    stored: Count[] | null;
    derived: Count[];
    listed: boolean;
    state: string;
    reason: string | null;
    path: Count[];
    /** Whether a prune keeps it. */
    kept: boolean;
    why: string;
  }[];
  row_maps: { map_id: string; state: "referenced"; age: null; referenced_by: Count[]; path: string; size: Count; base_id: Count | null }[];
}

/** A segment that newer ones of its index make needless. */
export interface PrunedSegment {
  index: string;
  uuid: string;
  why: string;
}

/** A plan to shorten the reuse history: prune, then drop the records nobody needs. */
export interface TrimPlan {
  format: Count;
  kind: "trim";
  table: string;
  branch: string | null;
  v_plan: Count;
  index_version: Count | null;
  outcome: "nothing" | "replace" | "delete";
  prune: PrunedSegment[];
  records: { record: Count; moves: string[]; kept: boolean; why: string[] }[];
}

/** A plan to take out superseded segments. */
export interface PrunePlan {
  format: Count;
  kind: "prune";
  table: string;
  branch: string | null;
  v_plan: Count;
  segments: PrunedSegment[];
}

/** A plan to remove row maps that no version names. */
export interface GcPlan {
  format: Count;
  kind: "gc";
  table: string;
  branch: string | null;
  v_plan: Count;
  older_than_ms: Count;
  /** Why nothing at all is removed; `null` when it is not so. */
  disabled: string | null;
  versions_read: Count;
  row_maps: {
    map_id: string;
    state: "referenced" | "young" | "age_unknown" | "aged";
    /** Milliseconds; `null` when the store does not say. */
    age: Count | null;
    bytes: Count;
    files: string[];
    referenced_by: string[];
  }[];
}

/** Plans about a reuse history. */
export type UpkeepPlan = TrimPlan | PrunePlan | GcPlan;

/** What a trim did. */
export interface TrimReport {
  segments_removed: PrunedSegment[];
  records_before: Count | null;
  records_after: Count | null;
  entry_removed: boolean;
  version_before: Count;
  version: Count;
  attempts: { version: Count; outcome: string; why: string | null }[];
  transactions: string[];
  ms: Count;
  requests: RequestCounts;
}

/** What a prune did. */
export interface PruneReport {
  segments_removed: PrunedSegment[];
  version_before: Count;
  version: Count;
  attempts: { version: Count; outcome: string; why: string | null }[];
  transaction: string | null;
  requests: RequestCounts;
}

/** What a collection removed. */
export interface GcReport {
  removed: string[];
  kept: Count;
  bytes_removed: Count;
  disabled: string | null;
  version: Count;
  requests: RequestCounts;
}

/** The report of each kind of plan about a reuse history. */
export interface UpkeepReports {
  trim: TrimReport;
  prune: PruneReport;
  gc: GcReport;
}
