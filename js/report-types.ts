// The documents of work that was done or is being done: segments built, commits, removals, progress.
import type { RemovalPlan } from "./plan-types.js";
import type { Count, Json, RequestCounts } from "./types.js";

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
  /** When the first of its files was sent, Unix milliseconds; they were seen whole after that. Absent = nobody looked. */
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
