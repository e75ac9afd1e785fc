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

/** What became of a commit. `pending`: not there, but a request may still be on its way. */
export type Fate = { is: "landed"; version: number } | { is: "lost" } | { is: "pending" } | { is: "unknown"; why: string };

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

/** The job a commit belongs to, as the beginning of a sentence about the index. */
export function jobName(job: string | undefined): string {
  switch (job) {
    case "refresh": return "A refresh";
    case "create_index": return "The creation";
    case "merge": return "A merge";
    case "drop_index": return "The drop";
    default: return "A change";
  }
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

/** `found` is the transaction as the table has it now, `latest` the table's latest version. */
export function fateOf(commit: KeptCommit, found: TransactionInfo | null, latest: number, now: number): Fate {
  if (found?.version != null) return { is: "landed", version: found.version };
  // A version of that number without this transaction is somebody else's, and will be for good.
  if (latest >= commit.version || now - commit.at > ON_ITS_WAY_MS) return { is: "lost" };
  return { is: "pending" };
}
