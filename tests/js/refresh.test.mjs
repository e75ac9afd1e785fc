// The main job in Node with real worker threads: over `serve --writable`, through callbacks, aborted, crashed.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Worker } from "node:worker_threads";
import { buildSegment, hostStore, memoryStore, open, WhetstoneError, WorkerPool } from "whetstone";
import { serve } from "whetstone/serve";
import { engineWithLimit } from "./engine-with-limit.mjs";
import { copyTable, expected, objectsOf, ROOT, scratch } from "./support.mjs";

const UUID = "0badcafe-0000-4000-8000-000000000000";
const INDEX = "k_idx";
const said = expected("fragments_200");
const UNINDEXED = said.indices.find((index) => index.name === INDEX).unindexed_fragments;

async function served(t) {
  const folder = scratch(t);
  const table = copyTable(t, "fragments_200", folder, "t");
  const serving = await serve({ root: folder, writable: true });
  t.after(() => serving.close());
  return { folder: table, target: `${serving.tables}t.lance` };
}

const segmentFolders = (folder) => readdirSync(path.join(folder, "_indices")).sort();

/** A store over a folder's bytes in memory whose reads take their time. */
function slowStore(folder, ms, { until = () => true } = {}) {
  const objects = objectsOf(folder);
  const fast = memoryStore(objects).callbacks;
  const calls = { get: 0, put: 0, list: 0, delete: 0 };
  const store = hostStore(Object.fromEntries(["get", "list", "put", "delete"].map((name) => [name, async (...args) => {
    calls[name] += 1;
    if (name === "get" && args[0].startsWith("data/") && until()) await new Promise((resolve) => setTimeout(resolve, ms));
    return fast[name](...args);
  }])));
  return { store, objects, calls };
}

for (const segments of [1, 2, 3]) {
  test(`over serve --writable, N = ${segments}, worker threads`, async (t) => {
    const { folder, target } = await served(t);
    const events = [];
    const requests = [];
    const table = await open(target, { onRequest: (event) => requests.push(event) });
    const pool = new WorkerPool({ size: 2 });
    t.after(() => pool.close());
    const report = await table.refresh(INDEX, { segments, pool, onProgress: (event) => events.push(event) });
    assert.deepEqual(report.established, UNINDEXED);
    assert.deepEqual(report.declared, UNINDEXED);
    assert.equal(report.segments_added, segments);
    assert.equal(report.version, said.version + 1);
    assert.ok(existsSync(path.join(folder, "_indices", report.added[0])));
    const done = events.filter((event) => event.phase === "build" && event.state === "done");
    assert.deepEqual(done.map((event) => event.task).sort(), [...Array(segments).keys()]);
    assert.equal(done.reduce((sum, event) => sum + event.rows, 0), done.reduce((sum, event) => sum + event.rows_total, 0));
    assert.deepEqual(events.slice(-2).map((event) => event.phase), ["commit", "done"]);
    assert.ok(new Set(done.map((event) => event.worker)).size === Math.min(segments, 2), "as many workers as there is work for");
    assert.equal(report.requests.count, requests.length, "the report counts every request, also those of workers");
    assert.equal(report.requests.bytes_written, requests.reduce((sum, event) => sum + event.bytes_written, 0));
    assert.ok(requests.some((event) => event.worker !== undefined && event.method === "PUT"), "requests of workers are reported");
    const fresh = await open(target);
    const index = await fresh.index(INDEX);
    assert.deepEqual(index.unindexed_fragments, []);
    assert.equal(index.indexed_percent, 100);
  });
}

test("what a store needs of the calling thread is asked for by message", async (t) => {
  const { store, objects, calls } = slowStore(copyTable(t, "fragments_200"), 0);
  const table = await open(store);
  const pool = new WorkerPool({ size: 2 });
    t.after(() => pool.close());
  const report = await table.refresh(INDEX, { segments: 2, pool });
  assert.deepEqual(report.established, UNINDEXED);
  assert.ok(calls.put > 0 && calls.get > 0);
  for (const uuid of report.added) assert.ok([...objects.keys()].some((name) => name.startsWith(`_indices/${uuid}/`)));
});

test("tasks built apart by buildSegment, committed together", async (t) => {
  const folder = copyTable(t, "fragments_200");
  const table = await open(folder);
  const plan = await table.planRefresh(INDEX, { segments: 2 });
  const rows = [];
  const built = [];
  for (const task of JSON.parse(JSON.stringify(plan.tasks))) built.push(await buildSegment(task, table.store.descriptor, { onProgress: (p) => rows.push(p) }));
  assert.equal(new Set(built.map((segment) => segment.uuid)).size, 2);
  assert.ok(rows.length > 0);
  for (const segment of built) for (const staged of segment.staged) assert.ok(existsSync(path.join(folder, staged)), staged);
  const report = await table.commitSegments(plan, JSON.parse(JSON.stringify(built)));
  assert.deepEqual(report.established, UNINDEXED);
  assert.equal(table.version, report.version);
});

test("a task that is run twice overwrites nothing", async (t) => {
  const folder = copyTable(t, "fragments_200");
  const table = await open(folder);
  const plan = await table.planRefresh(INDEX);
  const [one, two] = await Promise.all([buildSegment(plan.tasks[0], table.store), buildSegment(plan.tasks[0], table.store)]);
  assert.notEqual(one.uuid, two.uuid);
  assert.deepEqual(one.files, two.files);
});

test("an abort is answered within 200 ms, and leaves nothing behind", async (t) => {
  const { store, objects } = slowStore(copyTable(t, "fragments_200"), 400);
  const before = [...objects.keys()].sort();
  const table = await open(store);
  const plan = await table.planRefresh(INDEX, { segments: 3 });
  const abort = new AbortController();
  let started;
  const running = new Promise((resolve) => { started = resolve; });
  const job = table.run(plan, { workers: 2, signal: abort.signal, onProgress: (event) => { if (event.state === "running") started(); } });
  job.catch(() => undefined);
  await running;
  await new Promise((resolve) => setTimeout(resolve, 300)); // into the reads
  const at = performance.now();
  abort.abort();
  await assert.rejects(job, (error) => error instanceof WhetstoneError && error.code === "ABORTED" && error.changed === "nothing");
  const took = performance.now() - at;
  t.diagnostic(`answered after ${took.toFixed(0)} ms`);
  assert.ok(took < 200 + slack(), `answered after ${took} ms`);
  assert.deepEqual([...objects.keys()].sort(), before);
  assert.equal((await open(store)).version, said.version);
});

test("a worker that does not answer an abort is ended, and what it staged is removed", async (t) => {
  const folder = copyTable(t, "fragments_200");
  const before = segmentFolders(folder);
  const table = await open(folder);
  const workers = [];
  const pool = new WorkerPool({
    size: 1,
    worker: () => {
      const worker = new Worker(new URL("./workers/hang.mjs", import.meta.url), { workerData: { table: folder, uuid: UUID } });
      workers.push(worker);
      return worker;
    },
  });
  const abort = new AbortController();
  const job = table.refresh(INDEX, { pool, signal: abort.signal });
  job.catch(() => undefined);
  for (let i = 0; i < 500 && !existsSync(path.join(folder, "_indices", UUID)); i += 1) await new Promise((resolve) => setTimeout(resolve, 10));
  await new Promise((resolve) => setTimeout(resolve, 50));
  // The pool lets go of a worker it ends; the timer keeps this process until the end has come.
  const alive = setInterval(() => undefined, 1000);
  const exited = new Promise((resolve) => workers[0].on("exit", resolve)).finally(() => clearInterval(alive));
  const at = performance.now();
  abort.abort();
  await assert.rejects(job, (error) => error.code === "ABORTED" && error.changed === "nothing");
  const took = performance.now() - at;
  assert.ok(took >= 140, `it was given its time: ${took} ms`);
  assert.ok(took < 200 + slack(), `answered after ${took} ms`);
  await exited;
  assert.deepEqual(segmentFolders(folder).filter((name) => readdirSync(path.join(folder, "_indices", name)).length > 0), before);
});

test("a signal that fired before does nothing at all", async (t) => {
  const { store, calls } = slowStore(copyTable(t, "fragments_200"), 0);
  await assert.rejects(open(store, { signal: AbortSignal.abort() }), { code: "ABORTED" });
  assert.equal(calls.get + calls.list, 0);
  const table = await open(store);
  const plan = await table.planRefresh(INDEX);
  const before = { ...calls };
  await assert.rejects(table.run(plan, { signal: AbortSignal.abort() }), { code: "ABORTED" });
  await assert.rejects(buildSegment(plan.tasks[0], store, { signal: AbortSignal.abort() }), { code: "ABORTED" });
  await assert.rejects(table.commitSegments(plan, [], { signal: AbortSignal.abort() }), { code: "ABORTED" });
  assert.deepEqual(calls, before);
});

for (const [what, ms, outcome] of [["a quick commit is reported", 40, "committed"], ["a slow one is not known", 1500, "COMMIT_UNKNOWN"]]) {
  test(`a signal in the middle of a commit: ${what}`, async (t) => {
    const { callbacks } = memoryStore(objectsOf(copyTable(t, "fragments_200")));
    const abort = new AbortController();
    let at = 0;
    const store = hostStore({
      ...callbacks,
      put: async (name, chunks, options) => {
        if (name.startsWith("_versions/")) {
          at = performance.now();
          abort.abort();
          await new Promise((resolve) => setTimeout(resolve, ms));
        }
        return callbacks.put(name, chunks, options);
      },
    });
    const table = await open(store);
    const job = table.refresh(INDEX, { signal: abort.signal });
    const { code, changed, detail } = await job.then(() => ({ code: "committed" }), (error) => error);
    assert.equal(code, outcome);
    if (outcome === "committed") return assert.equal(table.version, said.version + 1);
    assert.ok(performance.now() - at < 200 + slack());
    assert.equal(changed, "unknown");
    // The error says what to look for, and here the commit did land after all.
    await new Promise((resolve) => setTimeout(resolve, ms + 100));
    const later = await open(memoryStoreOf(callbacks));
    assert.deepEqual((await later.segments(INDEX)).map((segment) => segment.uuid).filter((uuid) => detail.segments.includes(uuid)), detail.segments);
  });
}

const memoryStoreOf = (callbacks) => hostStore(callbacks);

test("a worker that is lost once: the task is tried again, under a new uuid", async (t) => {
  const folder = copyTable(t, "fragments_200");
  const table = await open(folder);
  const counter = new SharedArrayBuffer(4);
  let made = 0;
  const states = [];
  const pool = new WorkerPool({
    size: 1,
    worker: () => {
      made += 1;
      return new Worker(new URL("./workers/crash-first.mjs", import.meta.url), { workerData: { counter, table: folder, uuid: UUID } });
    },
  });
  const report = await table.refresh(INDEX, { pool, onProgress: (event) => states.push(event.state) });
  assert.deepEqual(report.established, UNINDEXED);
  assert.ok(!report.added.includes(UUID));
  assert.equal(made, 2, "the lost worker was replaced");
  assert.ok(states.includes("retrying"));
  assert.ok(!existsSync(path.join(folder, "_indices", UUID, "half.lance")), "what the lost attempt staged is removed");
  const again = await table.refresh(INDEX, { pool });
  assert.equal(again.fragments_indexed, 0);
});

test("an engine that traps twice is ENGINE_CRASHED, and the table is as it was", async (t) => {
  const folder = copyTable(t, "fragments_200");
  const before = readdirSync(folder, { recursive: true }).sort();
  const table = await open(folder);
  const pool = new WorkerPool({ size: 1, module: engineWithLimit(1) });
    t.after(() => pool.close());
  await assert.rejects(table.refresh(INDEX, { pool }), (error) => {
    assert.equal(error.code, "ENGINE_CRASHED", error.message);
    assert.equal(error.changed, "nothing");
    assert.equal(error.detail.attempts, 2);
    return true;
  });
  assert.deepEqual(readdirSync(folder, { recursive: true }).sort(), before);
  assert.deepEqual((await table.refresh(INDEX)).established, UNINDEXED, "this thread's engine is well");
});

test("a trap on the calling thread rejects what waits, ends nothing, and the next call gets a fresh engine", async (t) => {
  const folder = copyTable(t, "fragments_200");
  const script = path.join(scratch(t), "trap.mjs");
  const engine = path.join(path.dirname(script), "limited.wasm");
  writeFileSync(engine, engineWithLimit(8));
  const index = pathToFileURL(path.join(ROOT, "pkg/dist/node.js")).href;
  writeFileSync(script, `
    import { init, open, memoryStore } from ${JSON.stringify(index)};
    await init({ wasm: ${JSON.stringify(pathToFileURL(engine).href)} });
    const said = [];
    // A manifest of 8 MB does not fit: the allocation traps inside the call.
    const huge = memoryStore(new Map([["_versions/1.manifest", new Uint8Array(8_000_000)]]));
    const waiting = open({ __proto__: null, toString: () => "x" } && memoryStore(new Map()), {}).catch((e) => e.code);
    said.push(await waiting);
    const table = await open(${JSON.stringify(folder)}).catch((e) => e);
    const both = await Promise.allSettled([open(huge), open(huge)]);
    said.push(...both.map((r) => r.reason?.code));
    said.push(table.show ? await table.show().then(() => "still", (e) => e.code) : table.code);
    said.push(await open(${JSON.stringify(folder)}).then((t) => t.version, (e) => e.code));
    console.log(JSON.stringify(said));
  `);
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [script]);
  assert.equal(stderr, "");
  assert.deepEqual(JSON.parse(stdout), ["TABLE_NOT_FOUND", "ENGINE_CRASHED", "ENGINE_CRASHED", "ENGINE_CRASHED", said.version]);
});

test("neither pools nor tables keep Node alive", async (t) => {
  const folder = copyTable(t, "fragments_200");
  const script = path.join(scratch(t), "idle.mjs");
  writeFileSync(script, `
    import { open, WorkerPool } from ${JSON.stringify(pathToFileURL(path.join(ROOT, "pkg/dist/node.js")).href)};
    const table = await open(${JSON.stringify(folder)});
    const pool = new WorkerPool({ size: 2 });
    const report = await table.refresh(${JSON.stringify(INDEX)}, { segments: 2, pool });
    console.log(report.fragments_indexed);
    // Neither closed: the process ends by itself.
  `);
  const { stdout } = await promisify(execFile)(process.execPath, [script], { timeout: 60_000 });
  assert.equal(stdout.trim(), String(UNINDEXED.length));
});

test("a closed pool takes no jobs; one that is closed in a job ends it", async (t) => {
  const { store } = slowStore(copyTable(t, "fragments_200"), 300);
  const table = await open(store);
  const pool = new WorkerPool({ size: 1 });
  const job = table.refresh(INDEX, { pool });
  job.catch(() => undefined);
  await new Promise((resolve) => setTimeout(resolve, 300));
  await pool.close();
  await assert.rejects(job, { code: "ABORTED" });
  await assert.rejects(table.refresh(INDEX, { pool }), { code: "INVALID_ARGUMENT" });
  assert.throws(() => new WorkerPool({ size: 0 }), { code: "INVALID_ARGUMENT" });
});

/** Timers of a busy machine are late; the promise of 200 ms is for one that is not. */
function slack() {
  return 250;
}

test("a job keeps its table, though nobody else does and what nobody keeps is collected all the time", async (t) => {
  const folder = copyTable(t, "fragments_200");
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  const start = async () => {
    const table = await open(folder);
    return table.run(await table.planRefresh("k_idx", { segments: 3 }), { onProgress: collect, onCommitting: collect });
  };
  const all = setInterval(collect, 1);
  t.after(() => clearInterval(all));
  const report = await start();
  assert.equal(report.outcome ?? "committed", "committed");
  assert.ok(report.version > report.version_before);
});
