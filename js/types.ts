/**
 * The data documents of whetstone: what is inspected, planned, built and reported.
 *
 * Every document is plain data: it survives `JSON.stringify`, structured clone and a queue. Keys are snake_case. Ids, counts and
 * versions are numbers and never rounded (a value past 2^53 is the error `NUMBER_TOO_LARGE`). `null` means "not known", never zero.
 */

/** What a whole number is here: exact, at most 2^53 - 1. */
export type Count = number;

/** What had been changed on the store when an error happened. */
export type Changed = "nothing" | "staged" | "committed" | "unknown";

/** A value that survives JSON. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Advice attached to a document: which rule fired, on what evidence, and what to do about it. */
export interface Advice {
  /** Short stable name of the rule, e.g. `index_uncovered`. */
  rule: string;
  severity: "info" | "warning" | "error";
  /** One sentence with the numbers the rule fired on. */
  evidence: string;
  /** A command line and a JavaScript call that act on it; `null` when there is nothing to do but know. */
  action: string | { command?: string; js?: string } | null;
}

/** How many requests were sent and how many body bytes came back. */
export interface RequestCounts {
  count: Count;
  bytes: Count;
  /** Body bytes sent, where anything was written. */
  written?: Count;
}

/** One file of an index segment. */
export interface SegmentFile {
  /** Name below `_indices/<uuid>/`. */
  path: string;
  /** Bytes; `null` when the writer recorded none. */
  size: Count | null;
}

/** One physical segment of an index. */
export interface SegmentInfo {
  uuid: string;
  /** Fragments the segment declares to cover, ascending; `null` when it records no coverage (unknown). */
  fragment_ids: Count[] | null;
  /** `fragment_ids` that are live; `null` when unknown. */
  effective_fragment_ids: Count[] | null;
  /** `fragment_ids` that are no longer live; `null` when unknown. */
  retired_fragment_ids: Count[] | null;
  /** Coverage translated through a tagged reuse history, where the table has one. */
  derived_coverage?: Count[] | null;
  dataset_version: Count;
  index_version: Count | null;
  /** RFC 3339; `null` when not recorded. */
  created_at: string | null;
  /** Total bytes of the files; `null` when any size is unknown. */
  size_bytes: Count | null;
  files: SegmentFile[] | null;
  /** Id of the base path the files lie under; `null` for the table itself. */
  base_id: Count | null;
  status: string;
  status_reason: string | null;
}

/** One logical index: all segments of one name. */
export interface IndexInfo {
  name: string;
  /** Lance's name of the method, e.g. `BTree`, `ZoneMap`. */
  type: string;
  type_url: string;
  /** Field ids. */
  fields: number[];
  field_names: string[];
  num_segments: Count;
  /** Share of live rows covered, in percent, truncated to two places so that it never overstates; `null` for an empty table. */
  indexed_percent: number | null;
  /** False when a segment records no coverage: then `indexed_percent` is a lower bound. */
  coverage_known: boolean;
  size_bytes: Count | null;
  num_rows_indexed: Count | null;
  num_rows_unindexed: Count | null;
  covered_live_fragments: Count[];
  unindexed_fragments: Count[];
  segments: SegmentInfo[];
}

/** The document of `whetstone show` and of {@link Table.show}. */
export interface ShowDocument {
  uri: string;
  version: Count;
  /** Branch name; `null` on the main branch. */
  branch: string | null;
  /** Live rows; `null` when a fragment does not record its counts. */
  rows: Count | null;
  data_storage_version: string;
  has_stable_row_ids: boolean;
  reader_feature_flags: Count;
  writer_feature_flags: Count;
  fragments: { count: Count; rows: Count | null; deleted: Count | null; bytes: Count | null };
  indices: IndexInfo[];
  warnings: Advice[];
  requests: RequestCounts;
}

/** One data file of a fragment. */
export interface DataFileInfo {
  path: string;
  fields: number[];
  column_indices: number[];
  /** Lance file version, e.g. `2.2`. */
  file_version: string;
  size: Count | null;
}

/** One fragment. */
export interface FragmentInfo {
  id: Count;
  physical_rows: Count | null;
  num_deletions: Count | null;
  /** Live rows. */
  rows: Count | null;
  deletion_file: string | null;
  data_files: DataFileInfo[];
  /** Per index name, the segments (uuids) that cover the fragment. */
  covered_by: Record<string, string[]>;
}

/** Coverage of one index over the fragments of {@link FragmentColumns}. */
export interface CoverageColumn {
  /** Index name. */
  index: string;
  /** Segments of the index in manifest order; positions in `segment` refer to it. */
  uuids: string[];
  /** Per fragment the position of the first segment covering it, -1 where none does. */
  segment: Int32Array;
}

/** All fragments as typed columns: 100 000 of them cross the boundary without an object each. */
export interface FragmentColumns {
  /** Fragment ids, ascending. */
  ids: Uint32Array;
  /** Physical rows; NaN where not recorded. */
  physical_rows: Float64Array;
  /** Deleted rows; NaN where not recorded. */
  deleted_rows: Float64Array;
  /** Bytes of all data files; NaN where a size is not recorded. */
  bytes: Float64Array;
  /** Number of data files. */
  files: Uint32Array;
  coverage: CoverageColumn[];
}

/** One field of the schema, with its children. */
export interface FieldInfo {
  id: number;
  name: string;
  /** Lance's logical type, e.g. `int64`, `timestamp:us:UTC`. */
  type: string;
  nullable: boolean;
  children: FieldInfo[];
}

/** One version of the branch. */
export interface VersionInfo {
  version: Count;
  /** Bytes of the manifest; `null` when the listing does not say. */
  size: Count | null;
  /** RFC 3339, when the manifest was written, as far as the listing says. */
  modified: string | null;
  [key: string]: Json;
}

/** A tag. */
export interface TagInfo {
  version: Count;
  branch: string | null;
  [key: string]: Json;
}

/** A branch. */
export interface BranchInfo {
  parent_branch: string | null;
  parent_version: Count;
  [key: string]: Json;
}

/** A file of a fragment as it was when the work was planned. */
export interface PlannedFile {
  fragment: Count;
  [key: string]: Json;
}

/** The index a plan or task is about. */
export interface IndexTarget {
  name: string;
  field_id: number;
  /** Dotted column path. */
  column: string;
  method: string;
  params: Record<string, Json>;
  row_domain: string;
  [key: string]: Json;
}

/**
 * One unit of building: pure data that names its inputs, without a segment uuid (the attempt that runs it draws one) and without
 * credentials. It can be run by any worker, queue consumer or machine through {@link buildSegment}.
 */
export interface BuildTask {
  format: Count;
  table: string;
  v_plan: Count;
  index: IndexTarget;
  fragments: Count[];
  rows: Count;
  [key: string]: Json | IndexTarget;
}

/** One run of neighbouring fragments that becomes one segment. */
export interface PlannedRun {
  fragments: Count[];
  rows: Count;
  files: Json;
}

/** What the commit will do with an existing segment, and why. */
export interface SegmentFate {
  uuid: string;
  fate: "KEPT" | "REMOVED" | "REJECTED";
  why: string;
}

/** A plan to refresh one index. */
export interface RefreshPlan {
  format: Count;
  kind: "refresh";
  table: string;
  /** The version the plan was made on, and the build is pinned to. */
  v_plan: Count;
  index: IndexTarget & { params_from: Json };
  sets: { live: Count[]; covered: Count[]; unindexed: Count[] };
  /** Empty: nothing to do. */
  runs: PlannedRun[];
  heaviest_run_rows: Count;
  segments: SegmentFate[];
  /** Segments whose fragments are built anew, and why. */
  absorbed: { uuid: string; why: string }[];
  /** Groups that a compaction would find before and after. */
  groups: Json;
  tasks: BuildTask[];
  estimate: { requests: Count; read_bytes: Count | null; write_bytes: Count | null; memory_bytes: Count | null };
  warnings: Advice[];
}

/** Any plan; this release knows refresh plans. */
export type Plan = RefreshPlan;

/** A segment that was built and uploaded, but that no manifest names yet. */
export interface BuiltSegment {
  format: Count;
  uuid: string;
  name: string;
  field_id: number;
  method: string;
  row_domain: string;
  params: Record<string, Json>;
  fragments: Count[];
  rows: Count;
  dataset_version: Count;
  index_version: Count;
  details: Json;
  files: { path: string; size: Count }[];
  stats: Record<string, Json>;
  /** Objects this build wrote, relative to the table. */
  staged: string[];
}

/** What a refresh did, read back from the version it committed. */
export interface RefreshReport {
  index_name: string;
  /** Fragments established; 0 when there was nothing to do. */
  fragments_indexed: Count;
  segments_added: Json;
  segments_removed: Json;
  declared: Count[];
  established: Count[];
  left_out: { fragment: Count; why: string }[];
  version_before: Count;
  /** Equal to `version_before` when nothing was committed. */
  version: Count;
  attempts: { version: Count; outcome: string; why: string | null }[];
  /** Uuid of the transaction; `null` when nothing was committed. */
  transaction: string | null;
  ms: Count;
  requests: RequestCounts;
}

/** What running any plan answers. */
export type Report = RefreshReport;

/** A transaction as recorded in the table. */
export interface TransactionInfo {
  uuid: string;
  read_version: Count;
  /** Version it became; `null` when no readable version carries it. */
  version?: Count | null;
  operation: string;
  [key: string]: Json | undefined;
}

/** One request, as handed to an `onRequest` hook after it ended. */
export interface RequestEvent {
  method: string;
  /** Object, relative to the table root. */
  path: string;
  /** `[start, end)` of a ranged read, else `null`. */
  range: [Count, Count] | null;
  /** Body bytes read or written. */
  bytes: Count;
  /** Duration in milliseconds. */
  ms: number;
  /** HTTP status; `null` when there was no answer or the store is not HTTP. */
  status: number | null;
  /** Which worker sent it; absent for the calling thread. */
  worker?: number;
}

/** Progress of a job. */
export interface ProgressEvent {
  phase: "build" | "commit" | "done";
  /** Position of the task in `plan.tasks`; absent outside the build phase. */
  task?: number;
  /** Number of tasks of the job. */
  tasks: number;
  /** Number of the worker that runs the task. */
  worker?: number;
  state: "waiting" | "running" | "retrying" | "done" | "failed";
  /** Rows done of the task, or of all tasks outside the build phase. */
  rows: Count;
  /** Rows of the task, or of all tasks outside the build phase. */
  rows_total: Count;
}
