/// <reference lib="webworker" />
// Holds the engine, away from the page: a trap in here ends this worker and nothing else. Building happens in workers of its own pool.

import { WhetstoneError, directoryStore, httpStore, open, s3Store } from "whetstone";
import type { CommittingEvent, RequestEvent, RunOptions, Store, Table } from "whetstone";
import type { JobPlan, Ran } from "./documents.js";
import { folderOf, isFolder } from "../lib/folders.js";
import { isSandbox } from "../sandbox/calls.js";
import { archive, doAct, makeSandbox, remove, sandboxes, sandboxStore } from "../sandbox/worker.js";
import type { CallName, Calls, FromWorker, OpenedTable, StoreKeys, ToWorker } from "./protocol.js";

const scope = self as unknown as DedicatedWorkerGlobalScope;

interface Held {
  table: Table;
  latest: number;
  versions: OpenedTable["versions"];
}

/** Tables by handle, oldest first. Stepping through versions makes one each, and the page only ever uses the newest. */
const KEPT = 8;
const tables = new Map<number, Held>();
let nextHandle = 1;

const DAY_MS = 86_400_000;
const running = new Map<number, AbortController>();
/** Commits that wait until the page has kept what they are. */
const keeping = new Map<number, () => void>();

const counts = { count: 0, bytes: 0 };
let announced: ReturnType<typeof setTimeout> | undefined;

function post(message: FromWorker): void {
  scope.postMessage(message);
}

function onRequest(event: RequestEvent): void {
  counts.count += 1;
  if (event.method === "GET" || event.method === "PROPFIND") counts.bytes += event.bytes;
  announced ??= setTimeout(() => {
    announced = undefined;
    post({ type: "requests", counts: { ...counts } });
  }, 80);
}

async function storeOf(target: string, keys: StoreKeys | null): Promise<string | Store> {
  if (isFolder(target)) {
    const folder = await folderOf(target);
    if (!folder) throw new WhetstoneError("TABLE_NOT_FOUND", "this browser keeps no folder under this address: choose the folder again");
    return directoryStore(folder);
  }
  if (!keys) return target;
  const text = (value: string) => (value.trim() === "" ? undefined : value.trim());
  if (keys.kind === "s3" || target.startsWith("s3:")) {
    const region = text(keys.region);
    const endpoint = text(keys.endpoint);
    const accessKeyId = text(keys.accessKeyId);
    const secretAccessKey = text(keys.secretAccessKey);
    const sessionToken = text(keys.sessionToken);
    return s3Store(target, {
      ...(region ? { region } : {}), ...(endpoint ? { endpoint } : {}), ...(accessKeyId ? { accessKeyId } : {}), ...(secretAccessKey ? { secretAccessKey } : {}),
      ...(sessionToken ? { sessionToken } : {}), ...(accessKeyId ? {} : { anonymous: true }),
    });
  }
  if (keys.kind === "webdav" || keys.kind === "static") return httpStore(target, { mode: keys.kind });
  return target;
}

/** A table as the page sees it, filed under a new handle. */
async function opened(table: Table, versions: OpenedTable["versions"], latest: number, signal: AbortSignal): Promise<OpenedTable> {
  const [show, columns] = await Promise.all([table.show({ signal }), table.fragmentColumns({ signal })]);
  const handle = nextHandle;
  nextHandle += 1;
  tables.set(handle, { table, versions, latest });
  for (const [old, { table: unused }] of tables) {
    if (tables.size <= KEPT) break;
    tables.delete(old);
    if (![...tables.values()].some((other) => other.table === unused)) unused.close();
  }
  return { handle, show, schema: table.schema, columns, versions, latest };
}

/** Versions are a comfort: a store that cannot list them still shows the table. */
async function versionsOf(table: Table, signal: AbortSignal): Promise<OpenedTable["versions"]> {
  try {
    return await table.versions({ signal });
  } catch (error) {
    if (signal.aborted) throw error;
    return null;
  }
}

function held(handle: number): Held {
  const found = tables.get(handle);
  if (!found) throw new WhetstoneError("INTERNAL", "this table was closed; open it again", { closed: true });
  return found;
}

interface Running extends RunOptions {
  onCommitting: (event: CommittingEvent) => Promise<void>;
}

/** Tells the page what is about to be committed, and waits until it has kept it. */
function telling(id: number, table: Table, signal: AbortSignal): Running["onCommitting"] {
  // The engine knows no address of a store that is made of functions; the store does, and whether it lasts.
  const uri = table.store.descriptor.kind === "host" ? { uri: table.store.uri } : {};
  return (event) => new Promise<void>((resolve, reject) => {
    if (signal.aborted) {
      reject(new WhetstoneError("ABORTED", "cancelled before it was committed"));
      return;
    }
    keeping.set(id, resolve);
    post({ type: "committing", id, event: { ...event, ...uri } });
  });
}

/** Each kind of plan has its own report. */
function runPlan(table: Table, plan: JobPlan, options: Running): Promise<Ran["report"]> {
  switch (plan.kind) {
    case "compaction": return table.run(plan, options);
    case "trim": case "prune": case "gc": return table.run(plan, options);
    // What is removed before a cancel stays removed: only the end of it can be told truthfully.
    case "orphans": case "discard": return table.run(plan);
    default: return table.run(plan, options);
  }
}

type Handlers = { [N in CallName]: (argument: Calls[N]["argument"], signal: AbortSignal, id: number) => Promise<Calls[N]["answer"]> };

const handlers: Handlers = {
  async open({ target, version, keys }, signal) {
    const table = await open(isSandbox(target) ? await sandboxStore(target) : await storeOf(target, keys), { signal, onRequest, ...(version === null ? {} : { version }) });
    const versions = await versionsOf(table, signal);
    const latest = versions?.at(-1)?.version ?? table.version;
    return opened(table, versions, Math.max(latest, table.version), signal);
  },
  async at({ handle, version }, signal) {
    const { table, versions, latest } = held(handle);
    return opened(await table.at(version, { signal }), versions, latest, signal);
  },
  async reload({ handle }, signal) {
    const { table } = held(handle);
    await table.reload({ signal });
    const versions = await versionsOf(table, signal);
    return opened(table, versions, table.version, signal);
  },
  async plan({ handle, choice }, signal) {
    const { table } = held(handle);
    // The latest version is the one to plan on, whatever is on screen.
    await table.reload({ signal });
    switch (choice.kind) {
      case "refresh": return table.planRefresh(choice.index, { segments: choice.segments, signal, ...(choice.absorb ? { absorb: true } : {}) });
      case "merge": return table.planMerge(choice.index, { segments: choice.segments, signal });
      case "drop": return table.planDropIndex(choice.index, { signal });
      case "create":
        return table.planCreateIndex(choice.index, choice.column, choice.method, {
          signal, segments: choice.segments, train: choice.train, ...(Object.keys(choice.params).length > 0 ? { params: choice.params } : {}),
        });
      case "compact": return table.planCompaction({ ...choice.options, signal });
      case "trim": return table.planTrim({ signal });
      case "prune": return table.planPrune({ signal });
      case "gc": return table.planGc({ olderThanMs: choice.days * DAY_MS, signal });
      case "orphans": return table.orphans({ olderThan: choice.days * DAY_MS, signal });
      case "discard": return table.planDiscard(choice.failure, { signal });
    }
  },
  async run({ handle, plan, workers }, signal, id) {
    const { table } = held(handle);
    const report = await runPlan(table, plan, {
      workers, signal, onProgress: (event) => post({ type: "progress", id, event }), onCommitting: telling(id, table, signal),
    });
    // What was committed is committed: showing it is not part of what a cancel may stop.
    const never = new AbortController().signal;
    const versions = await versionsOf(table, never);
    return { report, table: await opened(table, versions, table.version, never) };
  },
  async inspect({ handle, index }, signal) {
    return held(handle).table.inspect(index, { signal });
  },
  async parts({ handle, index, uuid, offset, limit }, signal) {
    return held(handle).table.parts(index, uuid, { offset, limit, signal });
  },
  async audit({ handle, index, sample }, signal, id) {
    return held(handle).table.audit(index, {
      signal, ...(sample === null ? {} : { sample }), onProgress: ({ rows, rows_total }) => post({ type: "rows", id, rows, rows_total }),
    });
  },
  async probe({ handle, index, op, value }, signal) {
    return held(handle).table.probe(index, op, value ?? undefined, { signal });
  },
  async forecast({ handle, options }, signal) {
    return held(handle).table.forecast({ ...options, signal });
  },
  async groups({ handle }, signal) {
    const { before } = await held(handle).table.forecast({ plans: [], columns: true, signal });
    return before.columns ? { group: before.columns.group, frozen: before.columns.frozen } : null;
  },
  async history({ handle }, signal) {
    return held(handle).table.history({ signal });
  },
  async explainPair({ handle, a, b }, signal) {
    return held(handle).table.explainPair(a, b, { signal });
  },
  async sql({ handle, text }, signal) {
    const { table } = held(handle);
    if (/^\s*(explain|show)\b/i.test(text)) return table.sql(text, { signal });
    // The page runs the plan itself, after a second yes and with its own bookkeeping.
    await table.reload({ signal });
    return { ...await table.sql(`EXPLAIN ${text}`, { signal }), explain: false };
  },
  async sandboxMake({ name, options, acts }, signal, id) {
    await makeSandbox(name, options, acts, { signal, onRows: (rows, rows_total) => post({ type: "rows", id, rows, rows_total }) });
    return null;
  },
  async sandboxAct({ handle, act }, signal, id) {
    const { table } = held(handle);
    const report = await doAct(table, act, { signal, onRows: (rows, rows_total) => post({ type: "rows", id, rows, rows_total }), onCommitting: telling(id, table, signal) });
    const never = new AbortController().signal;
    const versions = await versionsOf(table, never);
    return { report, table: await opened(table, versions, table.version, never) };
  },
  async compaction({ handle }, signal) {
    return held(handle).table.planCompaction({ signal });
  },
  async archive({ target }) {
    return archive(target);
  },
  async sandboxRemove({ name }) {
    await remove(name);
    return null;
  },
  async sandboxes() {
    return sandboxes();
  },
  async transaction({ handle, uuid }, signal) {
    return held(handle).table.transaction(uuid, { signal });
  },
};

scope.onmessage = (event: MessageEvent<ToWorker>) => {
  const message = event.data;
  if (message.type === "abort") {
    running.get(message.id)?.abort();
    return;
  }
  if (message.type === "kept") {
    keeping.get(message.id)?.();
    keeping.delete(message.id);
    return;
  }
  const { id, name, argument } = message;
  const control = new AbortController();
  running.set(id, control);
  const handler = handlers[name] as (argument: unknown, signal: AbortSignal, id: number) => Promise<unknown>;
  handler(argument, control.signal, id)
    .then((value) => post({ type: "answer", id, value }))
    .catch((error: unknown) => post({ type: "failed", id, error: WhetstoneError.from(error).toJSON() }))
    .finally(() => running.delete(id));
};
