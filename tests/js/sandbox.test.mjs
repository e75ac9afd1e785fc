// Sandbox tables in memory: changes that are watched, ended and raced, and compactions, also where the store is full or workers are lost.
import assert from "node:assert/strict";
import test from "node:test";
import { Worker } from "node:worker_threads";
import { createSandbox, hostStore, memoryStore, open, WorkerPool } from "whetstone";
import { scratch } from "./support.mjs";

const ID = { name: "id", type: "int64", nullable: false };
const COLUMNS = [ID, { name: "v", type: "int32", shape: "random", min: 0, max: 90, nulls: 0.1 }, { name: "city", type: "utf8", shape: "choice", distinct: 9 }];

/** The values of a column, in the order of the table. */
async function values(table, column = "id") {
  return (await table.columnLines(column)).lines.trim().split("\n").map((line) => JSON.parse(line).value);
}

function rows(table) {
  return Promise.all(COLUMNS.map(({ name }) => values(table, name)));
}

/** Indexed, appended to, refreshed, deleted from: six fragments under two segments, and two under none. */
async function lived(store, options = {}) {
  const table = await createSandbox(store, { columns: COLUMNS, rows: 400, rowsPerFragment: 100, seed: 4, ...options });
  await table.createIndex("v_idx", "v", "BTREE", { workers: 1 });
  await table.append(60, { rowsPerFragment: 30 });
  await table.refresh("v_idx", { workers: 1 });
  await table.append(40, { rowsPerFragment: 20 });
  await table.delete({ where: "id >= 50 AND id < 430", every: 4 });
  return table;
}

test("an append tells how far it is, and a signal ends it with nothing left behind", async () => {
  const objects = new Map();
  const table = await createSandbox(memoryStore(objects), { columns: COLUMNS, rows: 10 });
  const before = [...objects.keys()].sort();
  const seen = [];
  const abort = new AbortController();
  const onProgress = ({ rows: done, rows_total: total }) => {
    seen.push([done, total]);
    if (done > 150_000) abort.abort();
  };
  await assert.rejects(table.append(400_000, { rowsPerFragment: 100_000, signal: abort.signal, onProgress }), { code: "ABORTED", changed: "nothing" });
  assert.ok(seen.length > 3 && seen.every(([done, total], i) => total === 400_000 && (i === 0 || done >= seen[i - 1][0])));
  assert.ok(seen.at(-1)[0] < 400_000, "it ended on the way");
  assert.deepEqual([...objects.keys()].sort(), before);
  // A timer is heard in the middle too: this thread does other things as well.
  const timed = new AbortController();
  const timer = setTimeout(() => timed.abort(), 60);
  await assert.rejects(table.append(20_000_000, { rowsPerFragment: 200_000, signal: timed.signal }), { code: "ABORTED", changed: "nothing" });
  clearTimeout(timer);
  assert.deepEqual([...objects.keys()].sort(), before);
  const { rows: added, first_row } = await table.append(30, { onProgress, signal: new AbortController().signal });
  assert.deepEqual([added, first_row, seen.at(-1)], [30, 10, [30, 30]]);
  await assert.rejects(createSandbox(memoryStore(), { columns: COLUMNS, rows: 300_000, signal: AbortSignal.timeout(30) }), { code: "ABORTED" });
});

test("appends that race number their rows apart", async () => {
  const objects = new Map();
  const store = memoryStore(objects);
  await createSandbox(store, { columns: [ID], rows: 5 });
  const tables = await Promise.all(Array.from({ length: 4 }, () => open(store)));
  const plans = await Promise.all(tables.map((table) => table.planAppend(20)));
  assert.deepEqual(plans.map((plan) => plan.first_row), [5, 5, 5, 5]);
  const reports = await Promise.all(tables.map((table, i) => table.run(plans[i])));
  assert.deepEqual(reports.map((report) => report.first_row).sort((a, b) => a - b), [5, 25, 45, 65]);
  const table = await open(store);
  assert.deepEqual((await values(table)).sort((a, b) => a - b), Array.from({ length: 85 }, (_, i) => i));
  const named = new Set((await table.fragments()).flatMap(({ data_files: files }) => files.map((file) => `data/${file.path}`)));
  assert.deepEqual([...objects.keys()].filter((path) => path.startsWith("data/")).sort(), [...named].sort(), "rows that were made twice are gone");
});

for (const defer of [false, true]) {
  test(`a table in memory is compacted, ${defer ? "its indexes left alone" : "its indexes remapped"}`, async () => {
    const table = await lived(memoryStore());
    const before = await rows(table);
    const seen = [];
    const report = await table.compact({ defer_index_remap: defer, workers: 2, onProgress: (event) => seen.push(event) });
    assert.deepEqual([report.fragments_removed, report.fragments_added], [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10]]);
    assert.equal(report.segments_remapped, defer ? 0 : 2);
    assert.equal(seen.filter((event) => event.phase === "rewrite" && event.state === "done").length, 3);
    assert.equal(report.rows, table.rows);
    assert.deepEqual(await rows(table), before);
    assert.deepEqual((await table.audit("v_idx")).findings, []);
    assert.equal((await table.history()).transitions.length, defer ? 3 : 0);
    const { established } = await table.refresh("v_idx", { workers: 1 });
    assert.deepEqual(established, [10]);
    const again = await table.compact({ workers: 1 });
    assert.deepEqual([again.transaction, again.version], [null, table.version], "nothing is left to do: other segments cover the neighbours");
  });
}

/** A memory store whose writes can be spoiled. */
function spoiled(objects, put) {
  const fast = memoryStore(objects).callbacks;
  return hostStore({ ...fast, put: async (...args) => (await put(...args)) ?? fast.put(...args) }, { uri: "memory:spoiled" });
}

test("a full store and lost workers leave the table whole, and it is compacted later", async (t) => {
  const objects = new Map();
  let room = Infinity;
  const store = spoiled(objects, async (path) => {
    if (!path.startsWith("data/")) return;
    if (room === 0) throw Object.assign(new Error("QuotaExceededError: no room"), { status: 507 });
    room -= 1;
  });
  const table = await lived(store);
  const before = await rows(table);
  const kept = [...objects.keys()].sort();
  room = 1;
  await assert.rejects(table.compact({ workers: 1 }), { code: "STORE_FULL", changed: "nothing" });
  assert.deepEqual([...objects.keys()].sort(), kept, "the group that was written is removed again");
  room = Infinity;
  const pool = new WorkerPool({
    size: 2,
    worker: () => new Worker(new URL("./workers/crash-first.mjs", import.meta.url), {
      workerData: { counter: new SharedArrayBuffer(4), table: scratch(t), uuid: "0badcafe-0000-4000-8000-000000000000", file: "data/half.lance" },
    }),
  });
  t.after(() => pool.close());
  await assert.rejects(table.compact({ pool }), (error) => error.code === "ENGINE_CRASHED" && error.detail.attempts === 2 && error.changed === "nothing");
  assert.deepEqual([...objects.keys()].sort(), kept);
  const abort = new AbortController();
  await assert.rejects(table.compact({ workers: 1, signal: abort.signal, onCommitting: () => abort.abort() }), { code: "ABORTED" });
  const fresh = await open(store);
  assert.deepEqual(await rows(fresh), before);
  await fresh.compact({ workers: 1 });
  assert.deepEqual(await rows(fresh), before);
  assert.deepEqual((await fresh.audit("v_idx")).findings, []);
});

test("what a store refused for certain is not listed as left behind, what it left open is", async () => {
  const objects = new Map();
  let status = null;
  const fast = memoryStore(objects).callbacks;
  const refuse = (path) => { if (status !== null) throw Object.assign(new Error(path), { status }); };
  const store = hostStore({
    ...fast,
    put: async (path, ...rest) => { refuse(path); return fast.put(path, ...rest); },
    delete: async (path) => { refuse(path); return fast.delete(path); },
  }, { uri: "memory:denied" });
  const table = await lived(store);
  const kept = [...objects.keys()].sort();
  const jobs = [
    ["data/", () => table.append(30)],
    ["data/", () => table.update({ where: "id < 20" }, { v: 3 })],
    ["_deletions/", () => table.delete({ where: "id < 20", every: 3 })],
    ["data/", () => table.compact({ workers: 1 })],
    ["_transactions/", () => table.dropIndex("v_idx")],
    ["_indices/", () => table.createIndex("city_idx", "city", "BITMAP", { workers: 1 })],
  ];
  for (const [place, job] of jobs) {
    status = 403;
    await assert.rejects(job, (error) => error.code === "STORE_DENIED" && error.changed === "nothing" && error.detail.staged === undefined);
    status = 500;
    await assert.rejects(job, (error) => error.changed === "staged" && error.detail.staged.length > 0 && error.detail.staged.every((path) => path.startsWith(place)));
  }
  assert.deepEqual([...objects.keys()].sort(), kept);
});

test("of very many fragments that stay, a plan names the first thousand and counts them all", async () => {
  const table = await createSandbox(memoryStore(), { columns: [ID], rows: 1205, rowsPerFragment: 1 });
  const plan = await table.planCompaction({ target_rows_per_fragment: 1, excluded_fragment_ids: [3, 1204] });
  assert.deepEqual(plan.skipped.map(({ fragment }) => fragment), Array.from({ length: 1000 }, (_, i) => i));
  assert.deepEqual(plan.skipped_counts, { excluded: 2, large: 1203 });
  const all = Object.values(plan.skipped_counts).reduce((sum, n) => sum + n, 0);
  assert.equal(all - plan.skipped.length, 205, "so many are not named");
  assert.equal(all, plan.fragments_after);
  assert.ok(plan.skipped.every(({ fragment, rule, why }) => rule === (fragment === 3 ? "excluded" : "large") && why.length > 10));
});
