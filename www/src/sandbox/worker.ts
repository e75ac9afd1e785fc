// The engine worker's part of the sandbox: where its tables are, and what is done to them. Real tables on a store of this browser.

import { archiveTable, buildSegment, createSandbox, memoryStore, open, opfsStore, WhetstoneError } from "whetstone";
import type { BuildTask, BuiltSegment, ChangeOptions, CommittingEvent, ProgressEvent, RefreshPlan, SandboxOptions, Store, Table } from "whetstone";
import type { Act, ActReport, Archive, SandboxPlace } from "./calls.js";
import { SANDBOX, sandboxName } from "./calls.js";

const FOLDER = "whetstone-sandbox";
/** Tables of browsers without storage of their own. They end with the worker. */
const memories = new Map<string, { objects: Map<string, Uint8Array>; store: Store }>();
let kept: Promise<boolean> | undefined;

/** Whether there is storage that can be written to here: private windows and plain http have none. */
function isKept(): Promise<boolean> {
  kept ??= (async () => {
    try {
      const root = await navigator.storage.getDirectory();
      const folder = await root.getDirectoryHandle(FOLDER, { create: true });
      const file = await folder.getFileHandle(".try", { create: true });
      await (await file.createWritable()).close();
      await folder.removeEntry(".try");
      return typeof navigator.locks !== "undefined";
    } catch {
      return false;
    }
  })();
  return kept;
}

const stores = new Map<string, Store>();

/** The store of a sandbox table; the same one as long as the worker lives. */
export async function sandboxStore(target: string): Promise<Store> {
  const name = sandboxName(target);
  if (!/^[\w-]{1,40}$/.test(name)) throw new WhetstoneError("INVALID_ARGUMENT", `a sandbox table is named by 1 to 40 letters, digits and dashes, not ${JSON.stringify(name)}`);
  if (await isKept()) {
    const store = stores.get(name) ?? opfsStore(`${FOLDER}/${name}.lance`);
    stores.set(name, store);
    return store;
  }
  let memory = memories.get(name);
  if (memory === undefined) {
    const objects = new Map<string, Uint8Array>();
    memory = { objects, store: memoryStore(objects, { uri: `memory:${name}.lance` }) };
    memories.set(name, memory);
  }
  return memory.store;
}

export async function remove(name: string): Promise<void> {
  memories.get(name)?.objects.clear();
  if (!(await isKept())) return;
  const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER, { create: true });
  await folder.removeEntry(`${name}.lance`, { recursive: true }).catch((error: unknown) => {
    if ((error as DOMException).name !== "NotFoundError") throw error;
  });
}

export async function sandboxes(): Promise<SandboxPlace> {
  if (!(await isKept())) return { kept: false, names: [...memories].filter(([, memory]) => memory.objects.size > 0).map(([name]) => name) };
  const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER, { create: true });
  const names: string[] = [];
  for await (const name of (folder as unknown as { keys(): AsyncIterable<string> }).keys()) if (name.endsWith(".lance")) names.push(name.slice(0, -6));
  return { kept: true, names: names.sort() };
}

/** How an act is watched and ended. */
export interface Watch {
  signal?: AbortSignal;
  onRows?: (rows: number, total: number) => void;
  onCommitting?: (event: CommittingEvent) => Promise<void>;
}

/** Makes a table anew and does to it what is said. */
export async function makeSandbox(name: string, options: SandboxOptions, acts: Act[], watch: Watch = {}): Promise<void> {
  const store = await sandboxStore(SANDBOX + name);
  await remove(name);
  held = null;
  const table = await createSandbox(store, { ...options, ...watched(watch) });
  try {
    for (const act of acts) await doAct(table, act, watch);
  } finally {
    table.close();
  }
}

/** The table as its versions name it. */
export async function archive(target: string): Promise<Archive> {
  const store = await sandboxStore(target);
  const named = await namedBy(store);
  let unnamed = 0;
  const bytes = await archiveTable(store, `${sandboxName(target)}.lance`, {
    leaveOut: (path) => {
      const left = (path.startsWith("data/") && !named.data.has(path)) || named.orphans.some((folder) => path.startsWith(folder));
      if (left) unnamed += 1;
      return left;
    },
  });
  return { bytes, unnamed };
}

/** The data files that versions of a table name, and the folders of index segments that none does. */
async function namedBy(store: Store): Promise<{ data: Set<string>; orphans: string[] }> {
  const table = await open(store);
  try {
    const data = new Set<string>();
    for (const { version } of await table.versions()) {
      const then = await table.at(version);
      for (const { data_files: files } of await then.fragments()) for (const { path } of files) data.add(`data/${path}`);
      then.close();
    }
    const { orphans } = await table.orphans();
    return { data, orphans: orphans.filter(({ what }) => what === "segment").map(({ path }) => `${path}/`) };
  } finally {
    table.close();
  }
}

interface Held {
  uri: string;
  plan: RefreshPlan;
  built: BuiltSegment[];
}

let held: Held | null = null;

const NOTHING: ActReport = { change: null, compaction: null, established: [], held: null, refused: null };

/** Does one thing to the latest version of a table. */
export async function doAct(table: Table, act: Act, watch: Watch = {}): Promise<ActReport> {
  const change = watched(watch);
  const job = { ...change, onProgress: summing(watch.onRows) };
  const commit = telling(watch);
  await table.reload(change);
  switch (act.do) {
    case "append": return { ...NOTHING, change: await table.append(act.rows, { rowsPerFragment: act.perFragment, ...change }) };
    case "delete": return { ...NOTHING, change: await table.delete(act.rows, change) };
    case "update": return { ...NOTHING, change: await table.update(act.rows, act.set, change) };
    case "index": {
      const { segments, train } = act;
      return { ...NOTHING, established: (await table.createIndex(act.name, act.column, act.method, { segments, train, ...job })).established };
    }
    case "refresh": return { ...NOTHING, established: (await table.refresh(act.index, { segments: act.segments, ...job })).established };
    case "merge": return { ...NOTHING, established: (await table.merge(act.index, job)).established };
    case "compact": return { ...NOTHING, compaction: await table.compact({ defer_index_remap: act.defer, ...job }) };
    case "drop": {
      await table.run(await table.planDropIndex(act.index), commit);
      return NOTHING;
    }
    case "deal": {
      const plan = await table.planRefresh(act.index, { segments: 1 });
      const [whole] = plan.tasks;
      if (whole === undefined) return NOTHING;
      const { ids, physical_rows: rows } = await table.fragmentColumns();
      const rowsOf = new Map([...ids].map((id, i) => [id, rows[i] ?? 0]));
      const built: BuiltSegment[] = [];
      for (let worker = 0; worker < act.workers; worker += 1) {
        const fragments = whole.fragments.filter((_, i) => i % act.workers === worker);
        const task: BuildTask = { ...whole, fragments, rows: fragments.reduce((sum, id) => sum + (rowsOf.get(id) ?? 0), 0) };
        if (fragments.length > 0) built.push(await buildSegment(task, table.store));
      }
      return { ...NOTHING, established: (await table.commitSegments(plan, built, commit)).established };
    }
    case "hold": {
      const plan = await table.planRefresh(act.index, { segments: 1 });
      const built: BuiltSegment[] = [];
      for (const task of plan.tasks) built.push(await buildSegment(task, table.store));
      held = { uri: table.uri, plan, built };
      return { ...NOTHING, held: heldOf(table) };
    }
    case "release": {
      if (held === null) throw new WhetstoneError("INVALID_ARGUMENT", "nothing is held: build the segments first");
      const { plan, built } = held;
      held = null;
      try {
        return { ...NOTHING, established: (await table.commitSegments(plan, built, commit)).established };
      } catch (error) {
        const failure = WhetstoneError.from(error);
        if (failure.changed === "unknown") throw failure;
        await table.discard(built).catch(() => undefined);
        return { ...NOTHING, refused: failure.toJSON() };
      }
    }
  }
}

function watched({ signal, onRows, onCommitting }: Watch): Pick<ChangeOptions, "signal" | "onProgress" | "onCommitting"> {
  return { ...(signal === undefined ? {} : { signal }), ...telling({ onCommitting }), onProgress: ({ rows, rows_total }) => onRows?.(rows, rows_total) };
}

/** Commits that no signal ends are announced all the same. */
function telling({ onCommitting }: Pick<Watch, "onCommitting">): Pick<ChangeOptions, "onCommitting"> {
  return onCommitting === undefined ? {} : { onCommitting };
}

/** The rows of all tasks of a job. Each says at first that it waits, so that the whole is known before anything is done. */
function summing(onRows: Watch["onRows"]): (event: ProgressEvent) => void {
  const tasks = new Map<number, { rows: number; total: number }>();
  return ({ task, tasks: all, rows, rows_total: total }) => {
    if (task === undefined) return onRows?.(rows, total);
    tasks.set(task, { rows, total });
    if (tasks.size < all) return;
    const sum = [...tasks.values()].reduce((one, other) => ({ rows: one.rows + other.rows, total: one.total + other.total }));
    onRows?.(sum.rows, sum.total);
  };
}

function heldOf(table: Table): ActReport["held"] {
  if (held === null || held.uri !== table.uri) return null;
  return { index: held.plan.index.name, segments: held.built.length, fragments: held.built.flatMap((segment) => segment.fragments) };
}
