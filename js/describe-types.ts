// The documents that describe a table: its indexes, fragments, fields, versions and transactions.
import type { Advice, Count, Json, RequestCounts } from "./types.js";

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
