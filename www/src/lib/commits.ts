// Commits that were on their way when their tab ended. Before a manifest is sent, its transaction is kept here; whoever opens the
// table next asks what became of it. No keys are kept, and nothing of the table but its address and the name of an index.

import type { CommittingEvent, TransactionInfo } from "../engine/documents.js";

export interface KeptCommit extends CommittingEvent {
  /** The address this page knows the table by, without secrets. */
  target: string;
  /** Kind of the plan that was run; absent in what earlier builds of the page kept. */
  job?: string;
  /** Milliseconds since 1970. */
  at: number;
}

/**
 * What became of a commit. `pending`: not there, but a request may still be on its way. `begun`: a job of two commits ended after the
 * first, and the second was never sent.
 */
export type Fate = { is: "landed"; version: number } | { is: "begun"; version: number } | { is: "lost" } | { is: "pending" } | { is: "unknown"; why: string };

/** The part of `localStorage` that is used. A browser that forbids it keeps nothing, and that is all that is lost. */
export type Keeping = Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">;

const PREFIX = "whetstone.commit.";
/** After this time no request is on its way any more. */
const ON_ITS_WAY_MS = 10 * 60_000;

export function keep(storage: Keeping, commit: KeptCommit): void {
  storage.setItem(PREFIX + commit.transaction, JSON.stringify(commit));
}

export function forget(storage: Keeping, transaction: string): void {
  storage.removeItem(PREFIX + transaction);
}

/** A table that is made anew or removed has no commits of before. */
export function forgetAll(storage: Keeping, target: string): void {
  for (const { transaction } of keptFor(storage, target)) forget(storage, transaction);
}

/** What is kept for a table, oldest first. */
export function keptFor(storage: Keeping, target: string): KeptCommit[] {
  const found: KeptCommit[] = [];
  for (let i = 0; i < storage.length; i += 1) {
    const key = storage.key(i);
    if (!key?.startsWith(PREFIX)) continue;
    const commit = parse(storage.getItem(key));
    if (commit?.target === target) found.push(commit);
  }
  return found.sort((a, b) => a.at - b.at);
}

interface JobWords {
  /** The job, as the beginning of a sentence. */
  name: string;
  /** Whether the sentence goes on with the name of an index. */
  ofIndex: boolean;
  /** What is so when it did not land. */
  lost: string;
  /** What its first commit did, where it has two. */
  begun: string;
}

const NOT_CHANGED = "no version carries it, and the table was not changed by it.";
const SEGMENTS_LEFT = `${NOT_CHANGED} Index files it uploaded may be left.`;
const BUILD = { ofIndex: true, lost: SEGMENTS_LEFT, begun: "" };
const ROWS = { ofIndex: false, lost: `${NOT_CHANGED} Data files it wrote may be left.`, begun: "" };

const JOBS: Record<string, JobWords> = {
  refresh: { name: "A refresh", ...BUILD },
  create_index: { name: "The creation", ...BUILD },
  merge: { name: "A merge", ...BUILD },
  drop_index: { name: "The drop", ofIndex: true, lost: NOT_CHANGED, begun: "" },
  compaction: {
    name: "A compaction", ofIndex: false,
    lost: "no version carries it, and fragments and indexes are as they were. Data and index files it uploaded may be left.",
    begun: "only reserved fragment ids for it: fragments and indexes are as they were. Data files it uploaded may be left.",
  },
  trim: {
    name: "A trim of the reuse history", ofIndex: false,
    lost: "no version carries it, and the history’s records are as they were. Superseded segments may have been pruned before it.",
    begun: "is the prune it begins with: superseded segments are gone, the history’s records are as they were.",
  },
  prune: { name: "A prune of superseded segments", ofIndex: false, lost: NOT_CHANGED, begun: "" },
  append: { name: "An append", ...ROWS },
  delete: { name: "A delete", ...ROWS },
  update: { name: "An update", ...ROWS },
};

/** The words for the job a commit belongs to; an older page kept no job. */
export function jobWords(job: string | undefined): JobWords {
  return (job === undefined ? undefined : Object.hasOwn(JOBS, job) ? JOBS[job] : undefined) ?? { name: "A change", ...BUILD };
}

function parse(text: string | null): KeptCommit | null {
  try {
    const value = JSON.parse(text ?? "null") as Partial<KeptCommit> | null;
    const sound = typeof value?.target === "string" && typeof value.transaction === "string" && typeof value.index_name === "string"
      && (value.job === undefined || typeof value.job === "string") && Number.isSafeInteger(value.version) && Number.isFinite(value.at);
    return sound ? value as KeptCommit : null;
  } catch {
    return null;
  }
}

/** Whether a transaction is the first of the two that its job commits. */
export function isFirst(job: string | undefined, found: TransactionInfo): boolean {
  return job === "compaction" ? found.operation === "ReserveFragments" : job === "trim" && found.properties["__lance.frag_reuse.superseded_prune"] === "true";
}

/** `found` is the transaction as the table has it now, `latest` the table's latest version. */
export function fateOf(commit: KeptCommit, found: TransactionInfo | null, latest: number, now: number): Fate {
  if (found?.version != null) return { is: isFirst(commit.job, found) ? "begun" : "landed", version: found.version };
  // A version of that number without this transaction is somebody else's, and will be for good.
  if (latest >= commit.version || now - commit.at > ON_ITS_WAY_MS) return { is: "lost" };
  return { is: "pending" };
}
