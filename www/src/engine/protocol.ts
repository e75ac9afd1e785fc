// What the page and its engine worker say to each other. Everything is plain data; functions stay on their side.

import type {
  AuditReport, CommittingEvent, ErrorDocument, FieldInfo, ForecastOptions, FragmentColumns, HistoryDocument, JobPlan, LayoutColumns, LayoutForecast, Pair, Probe, ProgressEvent, Ran, SegmentContents, SegmentParts,
  ShowDocument, SqlResult, TransactionInfo, VersionInfo,
} from "./documents.js";
import type { Choice } from "../jobs/choice.js";
import type { SandboxCalls } from "../sandbox/calls.js";

/** Requests sent and body bytes read, by all threads since the engine was started. */
export interface Counted {
  count: number;
  bytes: number;
}

/** Keys for a store that wants them. They live in the memory of this tab and nowhere else. */
export interface StoreKeys {
  kind: "" | "s3" | "webdav" | "static";
  endpoint: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string;
}

export interface OpenRequest {
  target: string;
  version: number | null;
  keys: StoreKeys | null;
}

/** One opened table at one version. */
export interface OpenedTable {
  /** Names the handle in the worker. */
  handle: number;
  show: ShowDocument;
  schema: FieldInfo[];
  columns: FragmentColumns;
  /** Ascending; null when this store cannot list versions. */
  versions: VersionInfo[] | null;
  /** Version of the latest manifest as far as the worker knows. */
  latest: number;
}

export interface PlanRequest {
  handle: number;
  choice: Choice;
}

export interface RunRequest {
  handle: number;
  plan: JobPlan;
  workers: number;
}

export interface RunResult {
  /** Of the kind of the plan. */
  report: Ran["report"];
  table: OpenedTable;
}

/** Calls of the page, by name: argument and answer. */
export interface Calls extends SandboxCalls {
  open: { argument: OpenRequest; answer: OpenedTable };
  reload: { argument: { handle: number }; answer: OpenedTable };
  at: { argument: { handle: number; version: number }; answer: OpenedTable };
  plan: { argument: PlanRequest; answer: JobPlan };
  run: { argument: RunRequest; answer: RunResult };
  inspect: { argument: { handle: number; index: string }; answer: SegmentContents[] };
  /** Pages, zones, keys or tokens of one segment, from `offset` on. */
  parts: { argument: { handle: number; index: string; uuid: string; offset: number; limit: number }; answer: SegmentParts };
  audit: { argument: { handle: number; index: string; sample: number | null }; answer: AuditReport };
  probe: { argument: { handle: number; index: string; op: string; value: string | null }; answer: Probe };
  forecast: { argument: { handle: number; options: ForecastOptions }; answer: LayoutForecast };
  /** What a compaction would rewrite together, with the table's own options. */
  groups: { argument: { handle: number }; answer: Pick<LayoutColumns, "group" | "frozen"> | null };
  history: { argument: { handle: number }; answer: HistoryDocument };
  explainPair: { argument: { handle: number; a: number; b: number }; answer: Pair };
  /** A statement that would change the table is planned on its latest version, and not run. */
  sql: { argument: { handle: number; text: string }; answer: SqlResult };
  transaction: { argument: { handle: number; uuid: string }; answer: TransactionInfo | null };
}

export type CallName = keyof Calls;

export type ToWorker =
  | { type: "call"; id: number; name: CallName; argument: unknown }
  | { type: "abort"; id: number }
  /** What a `committing` said is kept: the commit may go on. */
  | { type: "kept"; id: number };

export type FromWorker =
  | { type: "answer"; id: number; value: unknown }
  | { type: "failed"; id: number; error: ErrorDocument }
  | { type: "progress"; id: number; event: ProgressEvent }
  /** Rows that an audit has looked at, or that an act on a sandbox table has done. */
  | { type: "rows"; id: number; rows: number; rows_total: number }
  | { type: "committing"; id: number; event: CommittingEvent }
  | { type: "requests"; counts: Counted };
