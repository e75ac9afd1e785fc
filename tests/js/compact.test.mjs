// Compactions in Node with real worker threads: progress and report, a worker that is lost, an abort in the middle.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { Worker } from "node:worker_threads";
import { hostStore, memoryStore, open, WorkerPool } from "whetstone";
import { command, copyTable, expected, objectsOf } from "./support.mjs";

const UUID = "0badcafe-0000-4000-8000-000000000000";
const TABLE = "fragments_200";
const said = expected(TABLE);
// Several groups, so that several workers have something to do.
const options = { target_rows_per_fragment: 60 };

test("groups are rewritten by workers, and the handle is at the new version", async (t) => {
  const folder = copyTable(t, TABLE);
  const table = await open(folder);
  const plan = await table.planCompaction(options);
  assert.ok(plan.tasks.length > 2 && !plan.warnings.some((warning) => warning.rule === "cannot_run"));
  const events = [];
  const told = [];
  const pool = new WorkerPool({ size: 2 });
  t.after(() => pool.close());
  // What is run may have been kept in a file.
  const report = await table.run(JSON.parse(JSON.stringify(plan)), { pool, onProgress: (event) => events.push(event), onCommitting: (what) => { told.push(what.version); } });
  const done = events.filter((event) => event.phase === "rewrite" && event.state === "done");
  assert.deepEqual(done.map((event) => event.task).sort((a, b) => a - b), plan.tasks.map((_, at) => at));
  assert.equal(done.reduce((sum, event) => sum + event.rows, 0), plan.estimate.rows);
  assert.deepEqual(events.slice(-2).map((event) => event.phase), ["commit", "done"]);
  assert.deepEqual(report.fragments_added, plan.tasks.flatMap((task) => task.outputs.map((output) => output.fragment)));
  assert.deepEqual([report.version, table.version, told], [said.version + 2, said.version + 2, [said.version + 1, said.version + 2]]);
  const fresh = await open(folder);
  assert.equal((await fresh.fragments()).length, plan.fragments_after);
  assert.equal(fresh.rows, said.rows);
});

test("a worker that is lost once: the group is tried again, and what the lost attempt wrote is removed", async (t) => {
  const folder = copyTable(t, TABLE);
  const table = await open(folder);
  const counter = new SharedArrayBuffer(4);
  let made = 0;
  const states = [];
  const file = `data/${UUID}-0.lance`;
  const pool = new WorkerPool({
    size: 1,
    worker: () => {
      made += 1;
      return new Worker(new URL("./workers/crash-first.mjs", import.meta.url), { workerData: { counter, table: folder, uuid: UUID, file } });
    },
  });
  t.after(() => pool.close());
  const report = await table.compact({ ...options, pool, onProgress: (event) => states.push(event.state) });
  assert.ok(report.transaction);
  assert.equal(made, 2, "the lost worker was replaced");
  assert.ok(states.includes("retrying"));
  assert.ok(!existsSync(path.join(folder, file)), "what the lost attempt wrote is removed");
});

test("a signal in the middle ends it: the table and its folder are as they were", async (t) => {
  const objects = objectsOf(copyTable(t, TABLE));
  const fast = memoryStore(objects).callbacks;
  const abort = new AbortController();
  let reads = 0;
  const store = hostStore({
    ...fast,
    get: async (...args) => {
      if (args[0].startsWith("data/") && ++reads === 40) abort.abort();
      if (args[0].startsWith("data/")) await new Promise((resolve) => setTimeout(resolve, 1));
      return fast.get(...args);
    },
  });
  const before = [...objects.keys()].sort();
  const table = await open(store);
  await assert.rejects(table.compact({ ...options, workers: 2, signal: abort.signal }), { code: "ABORTED", changed: "nothing" });
  assert.ok(reads >= 40);
  assert.deepEqual([...objects.keys()].sort(), before);
});

test("the command compacts, or shows what it would do", async (t) => {
  const folder = copyTable(t, TABLE);
  const dry = await command(["compact", folder, "--dry-run", "--param", "target_rows_per_fragment=60"]);
  assert.equal(dry.status, 0, dry.stderr);
  assert.match(dry.stdout, /a compaction makes \d+ of 200 fragments/);
  assert.equal((await open(folder)).version, said.version);
  const run = await command(["compact", folder, "--param", "target_rows_per_fragment=60"]);
  assert.equal(run.status, 0, run.stderr);
  assert.match(run.stdout, /fragments became .* version \d+/);
  assert.match(run.stderr, /group \d+ of \d+: done/);
  const nothing = await command(["compact", folder, "--json", "--param", "target_rows_per_fragment=1"]);
  assert.equal(JSON.parse(nothing.stdout).transaction, null);
  const wrong = await command(["compact", folder, "--param", "target_rows=1"]);
  assert.equal(wrong.status, 1);
});
