/**
 * The data documents of whetstone: what is inspected, planned, built and reported.
 *
 * Every document is plain data: it survives `JSON.stringify`, structured clone and a queue. Keys are snake_case. Ids, counts and
 * versions are numbers and never rounded (a value past 2^53 is the error `NUMBER_TOO_LARGE`). `null` means "not known", never zero.
 */

export type * from "./describe-types.js";
export type * from "./history-types.js";
export type * from "./inside-types.js";
export type * from "./plan-types.js";
export type * from "./report-types.js";

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
