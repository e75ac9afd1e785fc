// What the page asks of the engine about sandbox tables. Plain data.

import type { ChangeReport, CompactionPlan, CompactionReport, ErrorDocument, NewValues, RowChoice, SandboxOptions } from "../engine/documents.js";
import type { OpenedTable } from "../engine/protocol.js";

/** One thing to do to a table. */
export type Act =
  | { do: "append"; rows: number; perFragment: number }
  | { do: "delete"; rows: RowChoice }
  | { do: "update"; rows: RowChoice; set: NewValues }
  | { do: "index"; name: string; column: string; method: string; segments: number; train: boolean }
  | { do: "refresh"; index: string; segments: number }
  | { do: "merge"; index: string }
  | { do: "drop"; index: string }
  /** Segments over exactly these positions of the fragment list, as builders make that deal fragments out in turn. */
  | { do: "deal"; index: string; workers: number }
  /** Builds what a refresh would, and keeps it from being committed. */
  | { do: "hold"; index: string }
  /** Commits what was held, whatever has become of the table. */
  | { do: "release" }
  | { do: "compact"; defer: boolean };

/** The kind of job whose commit an act sends, as plans are named; what an act holds back is committed by the next. */
export const JOB_OF: Record<Act["do"], string> = {
  append: "append", delete: "delete", update: "update", index: "create_index", refresh: "refresh", merge: "merge", drop: "drop_index", deal: "refresh", hold: "refresh",
  release: "refresh", compact: "compaction",
};

/** What an act did, in the words of whoever did it. */
export interface ActReport {
  change: ChangeReport | null;
  compaction: CompactionReport | null;
  /** Fragments that the new segments of a job on an index cover. */
  established: number[];
  /** Segments that wait to be committed. */
  held: HeldBuild | null;
  /** What the commit of held segments was refused with. */
  refused: ErrorDocument | null;
}

/** Segments that are built and in no version of the table. */
export interface HeldBuild {
  index: string;
  segments: number;
  fragments: number[];
}

export interface SandboxCalls {
  /** Makes the table anew, whatever was there, and does to it what is said. */
  sandboxMake: { argument: { name: string; options: SandboxOptions; acts: Act[] }; answer: null };
  sandboxAct: { argument: { handle: number; act: Act }; answer: { report: ActReport; table: OpenedTable } };
  /** What a compaction of the latest version would do. */
  compaction: { argument: { handle: number }; answer: CompactionPlan };
  /** The table as a tar file. */
  archive: { argument: { target: string }; answer: Archive };
  sandboxRemove: { argument: { name: string }; answer: null };
  sandboxes: { argument: null; answer: SandboxPlace };
}

export interface Archive {
  bytes: Uint8Array<ArrayBuffer>;
  /** Data and index files that no version names: a job that ended with its tab left them, and they are not taken along. */
  unnamed: number;
}

/** Where sandbox tables are kept, and which there are. */
export interface SandboxPlace {
  /** In the browser's own storage they survive the tab; in memory they end with it. */
  kept: boolean;
  names: string[];
}

/** Address of a sandbox table in this page. */
export const SANDBOX = "sandbox:";

export function isSandbox(target: string | null): target is string {
  return target !== null && target.startsWith(SANDBOX);
}

export function sandboxName(target: string): string {
  return target.slice(SANDBOX.length);
}
