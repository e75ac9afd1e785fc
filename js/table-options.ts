// What can be asked of a table, and how it is handed to the engine.
import { invalid, WhetstoneError } from "./errors.js";
import type { WorkerPool } from "./pool.js";
import type { RowChoice } from "./sandbox-types.js";
import type { Store, StoreOptions } from "./stores.js";
import type { Table } from "./table.js";
import type { CommittingEvent, ProgressEvent, RequestEvent } from "./types.js";

/** Which version of a table. */
export interface AtOptions {
  version?: number;
  tag?: string;
  /** A version number, or the name of a tag. */
  at?: number | string;
}

/** Options of {@link Table.planGc}. */
export interface GcOptions {
  /** Age in milliseconds a row map must have: seven days when absent, and never less. */
  olderThanMs?: number;
  signal?: AbortSignal;
}

/** Options of {@link open}. */
export interface OpenOptions extends AtOptions {
  branch?: string;
  /** How to reach the target, where its address does not say. */
  store?: Store | StoreOptions;
  signal?: AbortSignal;
  /** Called after every request, also those of workers. */
  onRequest?: (event: RequestEvent) => void;
}

/** Options of {@link Table.planRefresh}. */
export interface PlanRefreshOptions {
  /** Most segments to build, 1 when absent: the unindexed fragments are split into that many runs of neighbours. */
  segments?: number;
  /**
   * Build the fragments of existing segments anew with the rest: `"all"` (or true), or `"tiered"` the trailing ones that are no larger
   * than twice what is built behind them, so that the number of segments stays logarithmic.
   */
  absorb?: boolean | "none" | "tiered" | "all";
  /** Most bytes a build may hold for its segment, files included; it reads the column in several passes where that is too little at once. */
  maxBytes?: number;
  /** Parameters of the index method; what is not given is inherited from the existing segments. */
  params?: Record<string, unknown>;
  signal?: AbortSignal;
}

/** Options of {@link Table.planCreateIndex}. */
export interface PlanCreateIndexOptions {
  /** Most segments to build, 1 when absent: the fragments are split into that many runs of neighbours. */
  segments?: number;
  /** Parameters of the index method; what is not given is the method's default. */
  params?: Record<string, unknown>;
  /** False: commit the definition only; a refresh indexes the rows later. */
  train?: boolean;
  /** Replace an index of that name on the same column; without it such an index is `INDEX_EXISTS`. */
  replace?: boolean;
  /** Most bytes a build may hold for its segment, files included; it reads the column in several passes where that is too little at once. */
  maxBytes?: number;
  signal?: AbortSignal;
}

/** Options of {@link Table.planMerge}. */
export interface PlanMergeOptions {
  /** Segments to make, 1 when absent. */
  segments?: number;
  /** Uuids of the segments to merge; all when absent. */
  only?: string[];
  /** Read the column again even where the files of the segments would do. */
  reread?: boolean;
  /** Most bytes a build may hold for its segment, files included; it reads the column in several passes where that is too little at once. */
  maxBytes?: number;
  signal?: AbortSignal;
}

/** Options of {@link Table.run}. */
export interface RunOptions {
  /** Workers to use; a pool of the job's own when absent. */
  pool?: WorkerPool;
  /** Most workers of the job's own pool. */
  workers?: number;
  signal?: AbortSignal;
  onProgress?: (event: ProgressEvent) => void;
  /**
   * Told before each attempt to commit is sent, and awaited: keep what it says where you find it again should this program end
   * before the answer is there. When it throws, nothing is committed.
   */
  onCommitting?: (event: CommittingEvent) => void | Promise<void>;
}

/** Options of plans about the reuse history. */
export interface UpkeepOptions extends Pick<RunOptions, "signal" | "onCommitting"> {}

/** Options of {@link Table.audit}. */
export interface AuditOptions {
  /** Look at only so many of the covered fragments, drawn by chance; the report states the error. */
  sample?: number;
  signal?: AbortSignal;
  onProgress?: (progress: { rows: number; rows_total: number }) => void;
}

/** Options of {@link Table.inspect} and {@link Table.parts}. */
export interface PartsOptions {
  /** Parts of a segment to leave out at the beginning. */
  offset?: number;
  /** Most parts to list of a segment: 1000 when absent, and never more than 10 000. */
  limit?: number;
  signal?: AbortSignal;
}

/** Options of {@link Table.column}. Without any of them: all live rows. */
export interface ColumnOptions {
  /** Only rows of this fragment. */
  fragment?: number;
  /** Live rows to leave out at the beginning. */
  offset?: number;
  /** Most rows. */
  limit?: number;
  /** Only the rows at these addresses; they come ascending, each once. Not together with the others. */
  addresses?: Iterable<bigint | string>;
  signal?: AbortSignal;
}

/** @internal */
export function atOf({ version, tag, at }: AtOptions): { version?: number; tag?: string } {
  if ([version, tag, at].filter((given) => given !== undefined).length > 1) throw invalid("give one of version, tag and at");
  const number = version ?? (typeof at === "number" ? at : undefined);
  if (number !== undefined) {
    wholeNumber("version", number, 1);
    return { version: number };
  }
  const name = tag ?? (typeof at === "string" ? at : undefined);
  return name === undefined ? {} : { tag: name };
}

/** @internal */
export function columnRequest({ fragment, offset, limit, addresses }: ColumnOptions): Record<string, unknown> {
  for (const [name, value] of Object.entries({ fragment, offset, limit })) if (value !== undefined) wholeNumber(name, value, 0);
  return {
    ...(fragment === undefined ? {} : { fragment }), ...(offset === undefined ? {} : { offset }), ...(limit === undefined ? {} : { limit }),
    ...(addresses === undefined ? {} : { addresses: Array.from(addresses, String) }),
  };
}

/** @internal */
export function stretch({ offset, limit }: PartsOptions): Record<string, unknown> {
  if (offset !== undefined) wholeNumber("offset", offset, 0);
  if (limit !== undefined) wholeNumber("limit", limit, 0);
  return { ...(offset === undefined ? {} : { offset }), ...(limit === undefined ? {} : { limit }) };
}

/** @internal */
export function choiceOf(rows: string | RowChoice): RowChoice {
  return typeof rows === "string" ? { where: rows } : rows;
}

/** @internal The options that all plans share which build segments. */
export function buildOptions({ segments, maxBytes, params }: { segments?: number; maxBytes?: number; params?: Record<string, unknown> }): Record<string, unknown> {
  if (segments !== undefined) wholeNumber("segments", segments, 1);
  if (maxBytes !== undefined) wholeNumber("maxBytes", maxBytes, 1);
  return {
    ...(segments === undefined ? {} : { segments }), ...(maxBytes === undefined ? {} : { max_bytes: maxBytes }),
    ...(params === undefined ? {} : { params }),
  };
}

/** @internal */
export function wholeNumber(name: string, value: number, least: number): void {
  if (!Number.isInteger(value) || value < least) throw invalid(`${name} is a whole number of at least ${least}, not ${value}`);
  if (!Number.isSafeInteger(value)) throw new WhetstoneError("NUMBER_TOO_LARGE", `${name} is past 2^53: ${value}`);
}
