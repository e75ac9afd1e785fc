// The documents about layouts and compactions.
import type { Advice, Count, CoverageColumn, Json, Plan, RefreshReport, RequestCounts } from "./types.js";

/** Options of a compaction; every key is optional, names and meaning are Lance's. What is not given comes from the table's configuration, else is the default. */
export interface CompactionOptions {
  /** Rows an output fragment should have (1 048 576); a fragment with fewer is worth merging. */
  target_rows_per_fragment?: Count;
  /** Whether fragments with many deleted rows are rewritten on their own (true). */
  materialize_deletions?: boolean;
  /** Share of deleted rows above which they are (0.1). */
  materialize_deletions_threshold?: number;
  /** Leave the indexes alone and record in the fragment reuse history where rows went (false). */
  defer_index_remap?: boolean;
  /** Fragments that stay as they are, and separate their neighbours. */
  excluded_fragment_ids?: Count[];
  max_source_fragments?: Count;
  max_source_rows?: Count;
  max_source_bytes?: Count;
  /** The others change no plan. */
  max_rows_per_group?: Count;
  max_bytes_per_file?: Count;
  batch_size?: Count;
  num_threads?: Count;
}

/** Options as resolved; `from` says where each comes from. */
export interface ResolvedCompaction {
  target_rows_per_fragment: Count;
  materialize_deletions: boolean;
  materialize_deletions_threshold: number;
  defer_index_remap: boolean;
  excluded_fragment_ids: Count[];
  max_source_fragments: Count | null;
  max_source_rows: Count | null;
  max_source_bytes: Count | null;
  max_overlays_per_fragment: Count | null;
  from: Record<string, "argument" | "config" | "default">;
}

/** What a compaction does to a segment. */
export type CompactionFate = "KEPT" | "REMAPPED" | "FOLLOWED" | "STRIPPED" | "RETIRED" | "DEFERRED";

/** Why a fragment is not rewritten. */
export type SkipRule = "frozen" | "alone" | "large" | "excluded" | "held_back" | "over_budget";

/** A plan to compact, as Lance 14 makes it. */
export interface CompactionPlan {
  format: Count;
  kind: "compaction";
  table: string;
  branch: string | null;
  v_plan: Count;
  options: ResolvedCompaction;
  /** What is rewritten together; `outputs` have these ids if tasks end in this order. */
  tasks: { fragments: Count[]; rows: Count; deleted: Count; outputs: { fragment: Count; rows: Count }[]; why: string }[];
  /** The first thousand fragments that stay. */
  skipped: { fragment: Count; rule: SkipRule; why: string }[];
  skipped_counts: Partial<Record<SkipRule, Count>>;
  effects: { index: string; uuid: string | null; fate: CompactionFate; fragment_ids_after: Count[]; why: string }[];
  fragments_after: Count;
  writes_history: boolean;
  estimate: { rows: Count; read_bytes: Count | null; segments_remapped: Count };
  warnings: Advice[];
}

/** One group of a plan to compact, for a worker. It names no uuid and no credentials: the attempt that runs it draws one. */
export interface RewriteTask {
  format: Count;
  kind: "rewrite";
  table: string;
  branch: string | null;
  v_plan: Count;
  fragments: Count[];
  /** Rows of each file to be written. */
  outputs: Count[];
  rows: Count;
}

/** What was written for a {@link RewriteTask}; no version names it yet. */
export interface BuiltRewrite {
  format: Count;
  kind: "rewrite";
  uuid: string;
  fragments: Count[];
  /** Names are relative to `data/`. */
  files: { path: string; size: Count; rows: Count }[];
  rows: Count;
  staged: string[];
}

/** What a compaction did. */
export interface CompactionReport {
  fragments_removed: Count[];
  fragments_added: Count[];
  /** Rows that were written again. */
  rows: Count;
  /** Deleted rows that are gone for good. */
  deleted_rows: Count;
  segments_remapped: Count;
  /** A segment that was to be remapped and whose layout does not allow that is `RETIRED`: a refresh builds what it covered anew. */
  segments: { index: string; uuid: string; fate: CompactionFate; new_uuid: string | null }[];
  version_before: Count;
  /** The version committed; the one found current when there was nothing to do. */
  version: Count;
  /** Those of reserving fragment ids, then those of the exchange. */
  attempts: RefreshReport["attempts"];
  transaction: string | null;
  ms: Count;
  requests: RequestCounts;
}

/** Why two fragments are, or are not, rewritten together. */
export interface Pair {
  a: Count;
  b: Count;
  joined: boolean;
  rule: "same_task" | "segments" | "large" | "excluded" | "held_back" | "between" | "size_cut" | "over_budget";
  /** The rule in one sentence. */
  why: string;
  only_a: { index: string; uuid: string | null }[];
  only_b: { index: string; uuid: string | null }[];
  /** The neighbours that decide. */
  decided_at: [Count, Count];
}

/** One thing done to a table, in a plan to compare. */
export type ForecastStep =
  | { step: "refresh"; index?: string; segments?: Count; cut?: "balanced" | "gap_aware" | "interleaved" | "per_fragment"; absorb?: "none" | "tiered" | "all" }
  | { step: "merge"; index?: string; segments?: Count }
  | { step: "compact"; options?: CompactionOptions }
  | { step: "append"; fragments?: Count; rows: Count };

/** The plans that have a name. */
export type ForecastPlanName =
  | "compact" | "contiguous" | "gap_aware" | "interleaved" | "one_per_append" | "refresh_then_compact" | "compact_then_refresh" | "absorb" | "merge";

/** Options of {@link Table.forecast}. */
export interface ForecastOptions {
  /** Plans to compare, by name or as steps; all that have a name when absent. */
  plans?: (ForecastPlanName | (string & {}) | { name: string; steps: ForecastStep[] })[];
  /** Segments that the refreshes of named plans build; 1, or 4 where a plan is about cutting. */
  segments?: Count;
  /** Options of every compaction. */
  compaction?: CompactionOptions;
  /** Also give every layout fragment by fragment. */
  columns?: boolean;
}

/** A layout fragment by fragment. */
export interface LayoutColumns {
  /** Ascending. */
  ids: Uint32Array;
  physical_rows: Float64Array;
  deleted_rows: Float64Array;
  /** The group a compaction rewrites the fragment in; -1: none. */
  group: Int32Array;
  /** 1: the fragment is small and stays, because other segments cover its small neighbours. */
  frozen: Uint8Array;
  /** Segments that do not exist yet are called `new 1`, `new 2`, … */
  coverage: CoverageColumn[];
}

/** A layout in numbers. */
export interface LayoutSummary {
  fragments: Count;
  /** Live rows. */
  rows: Count;
  deleted_rows: Count;
  /** Segments of all indexes. */
  segments: Count;
  /** Groups that a compaction would rewrite, and the fragments in them. */
  groups: Count;
  grouped: Count;
  /** Small fragments that stay because other segments cover their small neighbours. */
  frozen: Count;
  /** Small fragments without a small neighbour. */
  alone: Count;
  large: Count;
  held_back: Count;
  excluded: Count;
  over_budget: Count;
  indexes: {
    name: string;
    method: string | null;
    segments: Count;
    dead_segments: Count;
    coverage_known: boolean;
    covered_fragments: Count;
    unindexed_fragments: Count;
    rows_indexed: Count;
    indexed_percent: number | null;
    /** Gaps between small neighbours that its segments keep from being joined. */
    freezes: Count;
  }[];
  /** The first of the frozen fragments. */
  frozen_examples: Count[];
  /** When asked for. */
  columns?: LayoutColumns;
}

/** Layouts side by side. */
export interface LayoutForecast {
  format: Count;
  kind: "forecast";
  table: string;
  branch: string | null;
  version: Count;
  compaction: ResolvedCompaction;
  before: LayoutSummary;
  plans: {
    name: string;
    /** What it does, in words. */
    title: string;
    steps: (ForecastStep & {
      took: {
        segments_added: Count; segments_removed: Count; rows_indexed: Count;
        fragments_rewritten: Count; fragments_written: Count; rows_rewritten: Count;
      };
    })[];
    after: LayoutSummary;
  }[];
  advice: Advice[];
  warnings: Advice[];
}

/** What {@link Table.sql} answers. */
export interface SqlResult {
  /** E.g. `REFRESH INDEX` or `SHOW VERSIONS`. */
  statement: string;
  /** Whether the statement asked only to explain: then nothing was changed. */
  explain: boolean;
  columns: string[];
  rows: Json[][];
  /** The plan that was run, or would be; `null` for SHOW. */
  plan: Plan | CompactionPlan | null;
  /** What running the plan did. */
  report: RefreshReport | CompactionReport | null;
}
