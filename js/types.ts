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
  action: { command: string; js: string } | null;
}

/** How many requests were sent and how many body bytes came back. */
export interface RequestCounts {
  count: Count;
  bytes: Count;
  /** Body bytes sent. */
  bytes_written: Count;
}

/** One file of an index segment. */
export interface SegmentFile {
  /** Name below `_indices/<uuid>/`. */
  path: string;
  /** Bytes; `null` when the writer recorded none. */
  size: Count;
}

/** One physical segment of an index. */
export interface SegmentInfo {
  uuid: string;
  /** Fragments the segment declares to cover, ascending (with a tagged reuse history: those it was built from); `null` when it records none (unknown). */
  fragment_ids: Count[] | null;
  /** Live fragments it covers; `null` when unknown. */
  effective_fragment_ids: Count[] | null;
  /** `fragment_ids` that are no longer live; `null` when unknown. */
  retired_fragment_ids: Count[] | null;
  /** Live fragments it covers, derived through the tagged reuse history; absent on tables without one. */
  derived_coverage?: Count[];
  dataset_version: Count;
  index_version: Count | null;
  /** RFC 3339; `null` when not recorded. */
  created_at: string | null;
  /** Total bytes of the files; `null` when any size is unknown. */
  size_bytes: Count | null;
  files: SegmentFile[] | null;
  /** Id of the base path the files lie under; `null` for the table itself. */
  base_id: Count | null;
  /** Field ids carried beside the key. */
  covering_fields: number[];
  status:
    | "ok" | "partly_retired" | "retired" | "empty" | "unknown"
    | "direct" | "translated" | "withdrawn" | "superseded" | "contributors_missing" | "gone" | "dormant" | "unsupported" | "corrupt";
  /** Why, in a sentence; `null` for `ok` and `direct`. */
  status_reason: string | null;
}

/** One logical index: all segments of one name. */
export interface IndexInfo {
  name: string;
  /** Lance's name of the method, e.g. `BTree`, `ZoneMap`. */
  type: string;
  /** `null` on very old entries. */
  type_url: string | null;
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
  /** Id of the base path it lies under; absent for the table itself. */
  base_id?: Count;
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
}

/** A tag. */
export interface TagInfo {
  version: Count;
  /** `null` is the main branch. */
  branch: string | null;
  created_at: string | null;
  updated_at: string | null;
  manifest_size: Count | null;
  metadata: Record<string, Json>;
}

/** A branch. */
export interface BranchInfo {
  /** `null` is the main branch. */
  parent_branch: string | null;
  parent_version: Count;
  /** Seconds since 1970. */
  create_at: Count | null;
  manifest_size: Count | null;
  metadata: Record<string, Json>;
}

/** The files of a fragment the work was planned on: a commit, wherever it runs, tells from them whether the fragment was rewritten. */
export interface PlannedFiles {
  fragment: Count;
  [key: string]: Json;
}

/** The index a plan or task is about. */
export interface IndexTarget {
  name: string;
  field_id: number;
  /** Dotted column path. */
  column: string;
  /** Lance's logical type of the column. */
  logical_type: string;
  /** `BTREE`, `ZONEMAP`, … */
  method: string;
  type_url: string;
  /** Format version the segments get. */
  index_version: number;
  /** Complete build parameters. */
  params: Record<string, Json>;
  /** What the segments store about a row. */
  row_domain: string;
  /** Details bytes, base64, that the segments repeat because one that stays has them; `null`: what the method writes. */
  details: string | null;
}

/**
 * One unit of building: pure data that names its inputs, without a segment uuid (the attempt that runs it draws one) and without
 * credentials. It can be run by any worker, queue consumer or machine through {@link buildSegment}.
 */
export interface BuildTask {
  format: Count;
  kind: "build";
  table: string;
  branch: string | null;
  /** Version to read. */
  v_plan: Count;
  /** Position in the plan. */
  task: Count;
  index: IndexTarget;
  /** Fragments the segment will cover, ascending. */
  fragments: Count[];
  /** Their live rows. */
  rows: Count;
  /** Write this existing segment again without some rows, instead of reading the column. */
  copy_of: { uuid: string; dataset_version: Count; without: Count[] } | null;
  /** Take what these segments hold from their files, and only what they do not cover from the column; absent: all is read from the column. */
  merge_of?: { segments: string[]; bytes: Count };
  /** Most bytes the build may hold. */
  max_bytes: Count | null;
}

/** One run of neighbouring fragments that becomes one segment. */
export interface PlannedRun {
  fragments: Count[];
  rows: Count;
  files: PlannedFiles[];
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
  branch: string | null;
  /** The version the plan was made on, and the build is pinned to. */
  v_plan: Count;
  /** `params_from`: where the parameters come from: the uuid of a segment, `defaults`, or `options` when the caller gave every one. */
  index: IndexTarget & { params_from: string };
  sets: { live: Count[]; covered: Count[]; unindexed: Count[] };
  /** One segment each; empty: nothing to do. */
  runs: PlannedRun[];
  heaviest_run_rows: Count;
  segments: SegmentFate[];
  /** Existing segments that are built or written anew, and why; `stale`: fragments whose old rows they still hold. */
  absorbed: { uuid: string; how: "absorb" | "copy"; stale: Count[]; why: string }[];
  /** Fragments a compaction with default options could merge before and after. */
  groups: { before: Count | null; after: Count | null };
  /** The building work: one task per run and one per copied segment. */
  tasks: BuildTask[];
  estimate: { requests: Count; read_bytes: Count | null; write_bytes: Count | null; memory_bytes: Count | null };
  warnings: Advice[];
  /** Facts of `v_plan` that the commit compares with, so that it works after that version was cleaned up. */
  basis: { max_fragment_id: Count | null; next_row_id: Count };
}

/** A plan to create an index: its segments are planned, built and committed as those of a refresh are. */
export interface CreateIndexPlan extends Omit<RefreshPlan, "kind"> {
  kind: "create_index";
  /** `train` false: only the definition is committed. `replace`: an index of the name on the same column goes. */
  create: { train: boolean; replace: boolean };
}

/** A plan to make few segments of many: they are built and committed as those of a refresh are. */
export interface MergePlan extends Omit<RefreshPlan, "kind"> {
  kind: "merge";
}

/** A plan whose segments are built before it is committed. */
export type BuildPlan = RefreshPlan | CreateIndexPlan | MergePlan;

/** A plan to drop an index; there is nothing to build. */
export interface DropIndexPlan {
  format: Count;
  kind: "drop_index";
  table: string;
  branch: string | null;
  v_plan: Count;
  /** `size_bytes`: of its files, which stay until old versions are cleaned up. */
  index: { name: string; fields: number[]; size_bytes: Count | null };
  /** Its segments when planned; the commit takes out all that have the name then. */
  segments: SegmentFate[];
}

/** Any plan of a job on an index. */
export type Plan = BuildPlan | DropIndexPlan;

/** A plan to remove what a job staged and, as is certain, will never commit. */
export interface DiscardPlan {
  format: Count;
  kind: "discard";
  table: string;
  branch: string | null;
  v_plan: Count;
  /** The transaction that was to commit it; `null` when none was sent. */
  transaction: string | null;
  /** Why it is certain. */
  why: string;
  segments: { uuid: string; files: string[]; bytes: Count }[];
}

/** What no retained version of any branch names; also the plan to remove what of it is `removable`. */
export interface OrphanList {
  format: Count;
  kind: "orphans";
  table: string;
  branch: string | null;
  v_plan: Count;
  /** Only what is older may be removed. */
  older_than_ms: Count;
  /** Manifests that were read for it. */
  manifests: Count;
  removable_bytes: Count;
  orphans: Orphan[];
}

/** One thing that no retained version names. */
export interface Orphan {
  what: "segment" | "row_map" | "transaction";
  /** Folder or file, relative to the branch's root. */
  path: string;
  files: Count;
  bytes: Count;
  /** Since the youngest of its files was written; `null` when the store does not say. */
  age_ms: Count | null;
  removable: boolean;
  why: string;
}

/** A plan that removes files and commits nothing. */
export type RemovalPlan = DiscardPlan | OrphanList;

/** What a removal did. */
export interface RemovalReport {
  kind: RemovalPlan["kind"];
  /** Objects, relative to the branch's root. */
  removed: string[];
  bytes: Count;
  /** What was to be removed and is still there. */
  left: { path: string; why: string }[];
  requests: RequestCounts;
}

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
  /** Rows that went in. */
  rows: Count;
  dataset_version: Count;
  index_version: Count;
  /** Details for the manifest entry; the value is base64. */
  details: { type_url: string; value: string };
  files: { path: string; size: Count }[];
  /** What the method counted. */
  stats: Record<string, Json>;
  /** Objects this build wrote, relative to the branch's root. */
  staged: string[];
  /** When its files were last seen whole, Unix milliseconds; absent = nobody looked. */
  seen_ms?: Count;
  copy_of: string | null;
  /** The segments whose files it was made of; absent when all was read from the column. */
  merged_from?: string[];
}

/** What a job on an index did, read back from the version it committed. */
export interface RefreshReport {
  index_name: string;
  /** Fragments established; 0 when there was nothing to do. */
  fragments_indexed: Count;
  segments_added: Count;
  segments_removed: Count;
  /** Uuids. */
  added: string[];
  removed: string[];
  declared: Count[];
  established: Count[];
  left_out: { fragment: Count; why: string }[];
  version_before: Count;
  /** The version committed, or the one found current when there was nothing to do. */
  version: Count;
  attempts: { version: Count; outcome: "committed" | "lost" | "unknown" | "nothing_to_do"; why: string | null }[];
  /** Uuid of the transaction; `null` when nothing was committed. */
  transaction: string | null;
  /** Milliseconds the verification and commit took. */
  ms: Count;
  /** Requests of the handle since it was opened, and those of the workers of the job. */
  requests: RequestCounts;
}

/** What is about to be committed: enough to ask {@link Table.transaction} later what became of it. Holds no keys. */
export interface CommittingEvent {
  /** Address of the table, or of its branch's root. */
  uri: string;
  /** `null` on the main branch. */
  branch: string | null;
  index_name: string;
  /** Uuid of the transaction: the same for every attempt, unless one was overtaken by versions that had been there before. */
  transaction: string;
  /** Version this attempt tries to become. */
  version: Count;
}

/** What running any plan answers. */
export type Report = RefreshReport;

/** A transaction as recorded in the table. */
export interface TransactionInfo {
  uuid: string;
  read_version: Count;
  /** Version it became; `null` when no readable version carries it. */
  version: Count | null;
  operation: string;
  properties: Record<string, string>;
  /** Entries it adds and removes, where it is a CreateIndex. */
  new?: TransactionEntry[];
  removed?: TransactionEntry[];
}

/** An index entry of a transaction. */
export interface TransactionEntry {
  name: string;
  uuid: string;
  fragment_ids: Count[] | null;
}

/** One request, as handed to an `onRequest` hook after it ended. */
export interface RequestEvent {
  method: string;
  /** Object, relative to the table root. */
  path: string;
  /** `[start, end)` of a ranged read, else `null`. */
  range: [Count, Count] | null;
  /** Body bytes received. */
  bytes: Count;
  /** Body bytes sent. */
  bytes_written: Count;
  /** Duration in milliseconds. */
  ms: number;
  /** HTTP status; `null` when there was no answer or the store is not HTTP. */
  status: number | null;
  /** Headers of the answer that tell how the store behaves; only where the store's descriptor asks for them. */
  headers?: Record<string, string>;
  /** Which worker sent it; absent for the calling thread. */
  worker?: number;
}

/** What is inside one segment. */
export interface SegmentContents {
  uuid: string;
  /** As the index method tells it: `method`, `rows`, `problems` and what the method has of its own; or `error` when it cannot be read. */
  contents: Record<string, unknown>;
  /** Its first parts; `null` when `contents` is an error, and an error of their own where only they cannot be read. */
  parts: SegmentParts | { error: { code: string; message: string } } | null;
}

/**
 * A stretch of the parts a segment has, in the order of its files. A list ends early after 4 MiB, so that the next stretch begins at
 * `offset + items.length`.
 */
export type SegmentParts = { /** Parts of the segment. */ count: Count; /** Number of the first one listed. */ offset: Count; /** Parts not listed, before and after. */ left_out: Count }
  & ({ kind: "pages"; items: PagePart[] } | { kind: "zones"; items: (ZonePart | FilterPart)[] } | { kind: "keys"; items: KeyPart[] } | { kind: "tokens"; items: TokenPart[] });

/** A page of a BTREE segment. */
export interface PagePart {
  page: Count;
  /** `null` in the older layout of several parts, where nothing says. */
  rows: Count | null;
  /** As the lookup file bounds it: `min` is `null` where the page begins with nulls, `max` where it has nothing else. */
  min: unknown;
  max: unknown;
  nulls: Count;
}

interface PlacedPart {
  fragment: Count;
  /** Physical offset of the first row in the fragment, and rows from there to the last, deleted ones included. */
  start: Count;
  length: Count;
}

/** A zone of a ZONEMAP segment; `min` and `max` are `null` where it has only nulls. */
export interface ZonePart extends PlacedPart {
  min: unknown;
  max: unknown;
  nulls: Count;
  nans: Count;
}

/** A zone of a BLOOMFILTER segment. */
export interface FilterPart extends PlacedPart {
  /** `null` in files that do not store the null rows. */
  nulls: Count | null;
  filter_bytes: Count;
  /** Share of the filter's bits that are set, and the chance that a value which is not there looks as if it were. */
  fill: number | null;
  false_positive_estimate: number;
}

/** A value, label or trigram of a BITMAP, LABEL_LIST or NGRAM segment; `null` is the key of nulls. */
export interface KeyPart {
  key: unknown;
  rows: Count;
  /** Bytes of its bitmap. */
  bytes: Count;
}

/** A token of an INVERTED segment. */
export interface TokenPart {
  partition: Count;
  token: string | null;
  documents: Count;
  /** Bytes of its postings without positions. */
  bytes: Count | null;
}

/** What the segments of an index say of a condition. */
export interface Probe {
  index: string;
  method: string;
  version: number;
  op: string;
  value: string | null;
  /** Whether the rows named are the answer in covered fragments; else they and the zones have to be looked at. */
  exact: boolean;
  segments: {
    uuid: string;
    fragments: number[];
    /** Pages that are read; `null` for methods without pages. */
    pages: number[] | null;
    /** Zones kept in covered fragments; `null` where single rows are named, and for methods without zones. */
    zones: { fragment: number; start: number; length: number }[] | null;
    /** Rows named in covered fragments; `null` when none are named. */
    rows: Count | null;
  }[];
  /** Segments that queries leave out under a tagged reuse history, and why. */
  omitted: { uuid: string; state: string; why: string }[];
  /** Covered live fragments that can match. */
  fragments: number[];
  /** Covered live fragments that cannot. */
  pruned: number[];
  /** Live fragments no segment covers: they have to be read whole. */
  unindexed: number[];
  /** Rows named in covered fragments, deleted ones among them; `null` when none are named. */
  rows: Count | null;
  /** The first thousand of them, in decimal. */
  first_rows: string[];
  row_domain: string;
}

/** One disagreement between an index and its column. */
export interface AuditFinding {
  /** E.g. `ROW_MISSING`, `ROW_STALE`, `ZONE_TOO_TIGHT`, `FILE_SIZE`, `OVERLAP`. */
  code: string;
  /** `null` for what concerns several segments. */
  segment: string | null;
  fragment: number | null;
  /** Row address or stable row id, whichever the segment stores, in decimal. */
  row: string | null;
  text: string;
}

/** What {@link Table.audit} found. */
export interface AuditReport {
  index: string;
  method: string;
  version: number;
  /** Whether every covered fragment was looked at. */
  exact: boolean;
  /** The fragments whose rows were looked at. */
  fragments: number[];
  covered_fragments: Count;
  rows: Count;
  segments: number;
  /** Of a sample that found nothing: with 95 % confidence fewer than this share of the covered fragments has faults. */
  error_bound: number | null;
  /** The first ten of each kind and segment. */
  findings: AuditFinding[];
  /** How many of each kind there are. */
  counts: Record<string, Count>;
  /** What was not looked at, and what is odd and harmless. */
  notes: string[];
}

/** Progress of a job. */
export interface ProgressEvent {
  /** `rewrite`: fragments are written again by a compaction. */
  phase: "build" | "rewrite" | "commit" | "done";
  /** Position of the task in `plan.tasks`; absent once all are done. */
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
