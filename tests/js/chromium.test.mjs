// The browser entry in a real Chromium with real module workers, on a table behind `serve --writable`.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { open } from "whetstone";
import { launch, visit } from "./chromium.mjs";
import { expected } from "./support.mjs";

const INDEX = "k_idx";
const said = expected("fragments_200");
const UNINDEXED = said.indices.find((index) => index.name === INDEX).unindexed_fragments;

let browser;

before(async () => { browser = await launch(); });
after(() => browser?.close());

test("inspects and refreshes with two module workers, across origins", async (t) => {
  const { page, workers, trouble, target } = await visit(t, browser);
  const seen = await page.evaluate(async ({ target, index }) => {
    const { open, WorkerPool } = await import("/dist/browser.js");
    const requests = [];
    const table = await open(target, { onRequest: (event) => requests.push(event) });
    const show = await table.show();
    const opened = table.requests().count;
    const columns = await table.fragmentColumns();
    const pool = new WorkerPool({ size: 2 });
    const progress = [];
    const report = await table.refresh(index, { segments: 2, pool, onProgress: (event) => progress.push(event) });
    await pool.close();
    return { show, opened, ids: [...columns.ids], report, progress, version: table.version, byWorkers: requests.filter((r) => r.worker !== undefined).length };
  }, { target, index: INDEX });
  assert.equal(seen.show.version, said.version);
  assert.ok(seen.opened <= 2, `opening took ${seen.opened} requests`);
  assert.deepEqual(seen.ids, said.fragments.map((fragment) => fragment.id));
  assert.deepEqual(seen.report.established, UNINDEXED);
  assert.equal(seen.version, said.version + 1);
  assert.equal(workers.length, 2);
  assert.ok(workers.every((url) => url.endsWith("/worker.js")), workers.join());
  assert.ok(seen.byWorkers > 0);
  assert.deepEqual(new Set(seen.progress.filter((event) => event.state === "done" && event.phase === "build").map((event) => event.worker)), new Set([0, 1]));
  assert.deepEqual(trouble, []);
  assert.deepEqual((await (await open(target)).index(INDEX)).unindexed_fragments, []);
});

test("a pool of the job's own ends with it; an abort is answered in time", async (t) => {
  const { page, target, folder } = await visit(t, browser);
  const seen = await page.evaluate(async ({ target, index }) => {
    const { open } = await import("/dist/browser.js");
    const table = await open(target);
    const plan = await table.planRefresh(index, { segments: 2 });
    const abort = new AbortController();
    let started;
    const running = new Promise((resolve) => { started = resolve; });
    const job = table.run(plan, { workers: 2, signal: abort.signal, onProgress: (event) => { if (event.state === "running") started(); } });
    const outcome = job.then(() => ({ code: "done" }), (error) => ({ code: error.code, changed: error.changed }));
    await running;
    const at = performance.now();
    abort.abort();
    const { code, changed } = await outcome;
    return { code, changed, ms: performance.now() - at };
  }, { target, index: INDEX });
  assert.deepEqual({ code: seen.code, changed: seen.changed }, { code: "ABORTED", changed: "nothing" });
  assert.ok(seen.ms < 450, `answered after ${seen.ms} ms`);
  for (let i = 0; i < 100 && page.workers().length > 0; i += 1) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(page.workers().length, 0);
  assert.equal((await open(folder)).version, said.version);
});

test("what went wrong is typed in a page too", async (t) => {
  const { page, target } = await visit(t, browser);
  const codes = await page.evaluate(async ({ target }) => {
    const { open, WorkerPool, memoryStore, httpStore } = await import("/dist/browser.js");
    const code = (promise) => promise.then(() => "none", (error) => error.code);
    const table = await open(target);
    const noScript = new WorkerPool({ size: 1, worker: "/no-such-worker.js" });
    return {
      notATable: await code(open(`${target}/data`)),
      path: await code(open("/a/path")),
      memory: await code(open(memoryStore())),
      // Nothing listens there, or its answer is hidden: a page cannot tell the two apart.
      unreachable: await code(open(httpStore("http://127.0.0.1:9/t.lance"))),
      worker: await code(table.refresh("k_idx", { pool: noScript })),
    };
  }, { target });
  assert.deepEqual(codes, { notATable: "TABLE_NOT_FOUND", path: "INVALID_ARGUMENT", memory: "TABLE_NOT_FOUND", unreachable: codes.unreachable, worker: "ENGINE_CRASHED" });
  assert.ok(["STORE_UNREACHABLE", "STORE_CORS"].includes(codes.unreachable), codes.unreachable);
});
