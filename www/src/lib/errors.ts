// What went wrong, to which object, what was changed, what to do. Every code has an answer; none shows a stack.

import type { Changed, ErrorDocument } from "../engine/documents.js";
import { rulesFor } from "./cors.js";
import type { CorsRule } from "./cors.js";
import { isFolder } from "./folders.js";
import { count } from "./format.js";

export interface Explanation {
  title: string;
  /** The engine's own sentence. */
  what: string;
  object: string | null;
  /** Objects that were uploaded and are still there, named by no version. */
  left: string[];
  changed: string;
  steps: string[];
  /** Texts to copy into a store's configuration. */
  paste: CorsRule[];
  retry: boolean;
}

const CHANGED: Record<Changed, string> = {
  nothing: "Nothing was changed.",
  staged: "Files were uploaded, but no version of the table names them. Queries do not see them.",
  committed: "The new version was committed.",
  unknown: "It is not known whether the new version was written.",
};

interface Advice {
  title: string;
  steps: string[];
  retry?: boolean;
}

const ADVICE: Record<string, Advice> = {
  TABLE_NOT_FOUND: { title: "No Lance table at this address", steps: ["Check the address: it is the folder that holds _versions and data, and it usually ends in .lance.", "If the store cannot list folders, name a version in the address (&v=12)."] },
  VERSION_NOT_FOUND: { title: "This version does not exist", steps: ["It may have been cleaned up. Open the latest version instead."] },
  INDEX_NOT_FOUND: { title: "No index of this name", steps: ["Somebody may have dropped it. Reload the table to see what is there."], retry: true },
  INDEX_AMBIGUOUS: { title: "More than one index matches this name", steps: ["Write the name exactly as the list of indexes spells it."] },
  INDEX_DROPPED: { title: "The index was dropped meanwhile", steps: ["It stays dropped. Reload the table to see its present state."], retry: true },
  INDEX_CHANGED: { title: "The index changed while it was being built", steps: ["Plan again: the new plan starts from what is there now."], retry: true },
  STALE_PLAN: { title: "The plan is out of date", steps: ["Plan again: the new plan starts from what is there now."], retry: true },
  NOTHING_LEFT: { title: "All planned fragments are gone", steps: ["They were compacted or deleted while the segments were built. Plan again."], retry: true },
  COLUMN_NOT_FOUND: { title: "The indexed column does not exist", steps: ["It may have been renamed or dropped. Reload the table."], retry: true },
  UNSUPPORTED_FEATURE: { title: "This table uses a feature that Whetstone does not know", steps: ["It refuses such tables so as never to misread them. Use the Lance SDK for this table."] },
  UNSUPPORTED_ENCODING: { title: "A file is encoded in a way that Whetstone does not read", steps: ["The index can be refreshed with Lance's SDK (optimize_indices)."] },
  UNSUPPORTED_METHOD: { title: "This kind of index cannot be refreshed here", steps: ["Lance's SDK can: optimize_indices keeps its parameters."] },
  UNSUPPORTED_TYPE: { title: "The column has a type that Whetstone does not index", steps: ["The index can be refreshed with Lance's SDK (optimize_indices)."] },
  HISTORY_UNSUPPORTED: { title: "The table's fragment reuse history is not supported", steps: ["The history holds records this release does not know, or the job is one it does not do on such tables; the message says which. Lance's own maintenance can do it."] },
  CORRUPT_FILE: { title: "A file of the table is damaged or missing", steps: ["Check that the object below is complete. If versions are being cleaned up, reload the table."], retry: true },
  STORE_UNREACHABLE: { title: "The store did not answer", steps: ["Check the address and the network, then try again."], retry: true },
  STORE_DENIED: { title: "The store refused access", steps: ["Give keys that may read this table, or make it public. Keys stay in the memory of this tab."], retry: true },
  STORE_CORS: { title: "The store does not allow this page to read it", steps: ["Browsers only show a page what the store allows for its origin. Add the rule below to the store, then try again.", "A wrong address or a store that is down looks the same to a page: check those too."], retry: true },
  STORE_RANGES: { title: "The store does not serve parts of files", steps: ["Whetstone reads byte ranges. Serve the table from a store that answers Range requests."] },
  STORE_ENCODING: { title: "The server compresses what it sends", steps: ["Turn off compression (gzip, brotli) for the table's files: ranges of a compressed answer are useless."] },
  STORE_UNSAFE: { title: "This store cannot be written to safely", steps: ["It may let two writers create the same version. Refresh from a store that honours If-None-Match: *."] },
  STORE_FULL: { title: "The store is full", steps: ["Free some space, then try again."], retry: true },
  COMMIT_CONFLICT: { title: "Other writers were faster, again and again", steps: ["Try again when the table is quieter."], retry: true },
  COMMIT_UNKNOWN: { title: "The commit's outcome is not known", steps: ["Reload the table: if the new version carries the transaction below, it was committed. Nothing was deleted."], retry: true },
  MEMORY_LIMIT: { title: "Not enough memory for this work", steps: ["Use more segments or fewer workers, so that less is built at once."], retry: true },
  ABORTED: { title: "Cancelled", steps: [], retry: true },
  TIMEOUT: { title: "The store took too long", steps: ["Try again; if it stays slow, use fewer workers."], retry: true },
  ENGINE_CRASHED: { title: "The engine crashed", steps: ["It has been restarted; this page and the table are not harmed. Try again, and report it if it happens twice."], retry: true },
};

const FOLDER_DENIED: Advice = { title: "The folder is closed to this page", steps: ["Browsers ask again after a while. Nothing of the folder leaves this machine."] };

const DEFERRED_ONLY: Advice = { title: "Only with the indexes left alone", steps: ["Tick “Leave the indexes alone”: the fragment reuse history then records where rows went."] };

function adviceOf(failure: ErrorDocument, target: string | null): Advice | undefined {
  if (failure.code === "STORE_DENIED" && isFolder(target)) return FOLDER_DENIED;
  if (failure.code === "UNSUPPORTED_FEATURE" && failure.detail?.option === "defer_index_remap") return DEFERRED_ONLY;
  return ADVICE[failure.code];
}

export function explain(failure: ErrorDocument, origin: string, target: string | null): Explanation {
  const advice = adviceOf(failure, target) ?? { title: "Something went wrong", steps: ["Try again. If it happens twice, please report the sentence above."], retry: true };
  return {
    title: advice.title,
    // Engine messages begin like the clause of a longer sentence; a name at the beginning is left as it is spelled.
    what: failure.message.replace(/^(the|this|there|no|an?|it|every|nothing) /, (word) => word.charAt(0).toUpperCase() + word.slice(1)),
    object: objectOf(failure),
    left: leftOf(failure),
    changed: changedBy(failure),
    steps: advice.steps,
    paste: failure.code === "STORE_CORS" ? rulesFor(origin, target) : [],
    retry: advice.retry ?? false,
  };
}

/** A compaction that failed after it had reserved fragment ids has written a version, and `reserved` says which. */
function changedBy({ changed, detail }: ErrorDocument): string {
  const { reserved } = (detail ?? {}) as { reserved?: unknown };
  const sentence = CHANGED[changed] ?? CHANGED.unknown;
  if (typeof reserved !== "number" && reserved !== "unknown") return sentence;
  const version = typeof reserved === "number" ? `Version ${count(reserved)} was written for it, and only reserves fragment ids.` : "A version that only reserves fragment ids may have been written.";
  return `${changed === "nothing" ? "Fragments and indexes are as they were." : sentence} ${version}`;
}

function objectOf(failure: ErrorDocument): string | null {
  const detail = failure.detail as Record<string, unknown> | null | undefined;
  for (const key of ["object", "path", "url", "file"]) {
    const value = detail?.[key];
    if (typeof value === "string" && value) return value;
  }
  return null;
}

function leftOf(failure: ErrorDocument): string[] {
  const staged = (failure.detail as Record<string, unknown> | null | undefined)?.staged;
  return Array.isArray(staged) ? staged.filter((path): path is string => typeof path === "string") : [];
}
