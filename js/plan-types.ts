// The documents of work to be done: plans, their tasks, and what is to be removed.
import type { Advice, Count, Json } from "./types.js";

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
