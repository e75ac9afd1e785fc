/** What tables to try things on are made of, and the documents of their changes. */
import type { UpkeepOptions } from "./table-options.js";
import type { Count, RequestCounts } from "./types.js";

/** One column of a table made by `createSandbox`. */
export interface SandboxColumn {
  /** Name, without a dot. */
  name: string;
  /** `int8` … `uint64`, `float32`, `float64`, `bool`, `utf8`, `timestamp` (microseconds), `date32`, `labels` (a list of utf8), or a logical type of the format. */
  type: string;
  /** May hold nulls; true when absent. */
  nullable?: boolean;
  /** Which value a row has: `sequence` (start + step × row), `random` (min to max), `choice` (one of `distinct`), `words`, `sentences`. */
  shape?: "sequence" | "random" | "choice" | "words" | "sentences";
  start?: number | string;
  step?: number;
  min?: number | string;
  max?: number | string;
  /** How many different values or words there are. */
  distinct?: number;
  /** Fewest and most words of a sentence, items of a list. */
  words?: [number, number];
  /** Share of nulls, from 0 to 1. */
  nulls?: number;
}

/** What `createSandbox` makes. */
export interface SandboxOptions {
  columns: SandboxColumn[];
  /** Rows it begins with; 0 when absent. */
  rows?: number;
  /** Rows of a fragment; about a million when absent. */
  rowsPerFragment?: number;
  /** What generated values depend on besides column and row; 0 when absent. */
  seed?: number;
  /** Version of its data files; `2.0` when absent, the one in which lists are written. */
  dataStorageVersion?: "2.0" | "2.1" | "2.2";
}

/** Rows, by everything that is given: all of it must hold. */
export interface RowChoice {
  /** Conditions joined by AND: `id < 10 AND note IS NOT NULL`, also IN and BETWEEN; `true` is met by every row. */
  where?: string;
  /** Only rows of these fragments. */
  fragments?: number[];
  /** Only live rows from the first up to, not including, the second position of the whole table. */
  rows?: [number, number];
  /** Of the rows chosen so far in a fragment, the first and every n-th after it. */
  every?: number;
}

/** New values of columns. */
export type NewValues = Record<string, string | number | boolean | string[] | null>;

/** A plan to append, delete or update rows. */
export interface ChangePlan {
  format: 1;
  kind: "append" | "delete" | "update";
  table: string;
  branch: string | null;
  v_plan: Count;
  /** Rows that are added, deleted or updated. */
  rows: Count;
  /** Append: number of the first row, which its generated values depend on, unless somebody else appends before it is run. */
  first_row: Count | null;
  rows_per_fragment: Count;
  new_fragments: Count;
  choice: RowChoice | null;
  set: NewValues | null;
  /** Fragments that lose rows; one with none `left` goes. */
  touched: { fragment: number; rows: Count; left: Count; files: string[]; deletion: string | null }[];
  write_bytes: Count;
}

/** What a change did, read from what was committed. */
export interface ChangeReport {
  kind: "append" | "delete" | "update";
  rows: Count;
  /** Behind that of the plan when somebody else appended meanwhile: two appends never number their rows alike. */
  first_row: Count | null;
  fragments_added: number[];
  /** Fragments that have another deletion vector. */
  fragments_changed: number[];
  /** Fragments that went with their last row. */
  fragments_removed: number[];
  /** Segments that went because nothing they cover is left. */
  segments_removed: string[];
  version_before: Count;
  version: Count;
  attempts: { version: Count; outcome: string; why: string | null }[];
  transaction: string | null;
  requests: RequestCounts;
}

/** How far a change is. */
export interface RowsDone {
  rows: Count;
  rows_total: Count;
}

/** Options of a change, and of running its plan. A signal ends it and what was written is removed; once a commit is sent, only its end tells what happened. */
export interface ChangeOptions extends UpkeepOptions {
  /** Told while rows are written. */
  onProgress?: (done: RowsDone) => void;
}
