// The core engine (`whetstone/core`): the main job in Node and in Chromium, and what it refuses. (workerd's entry: workerd.test.mjs.)
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import * as full from "whetstone";
import * as core from "whetstone/core";
import { launch, visit } from "./chromium.mjs";
import { copyTable, expected, PACKAGE, ROOT } from "./support.mjs";

const INDEX = "k_idx";
const said = expected("fragments_200");
const UNINDEXED = said.indices.find((index) => index.name === INDEX).unindexed_fragments;

/** One deferred index of every method. */
const ONE_OF_EACH = "deferred_all_kinds";
const MAINTAINED = ["b_btree", "z_zonemap", "m_bitmap"];
const FULL_ONLY = { f_bloomfilter: "BLOOMFILTER", l_label_list: "LABEL_LIST", n_ngram: "NGRAM", t_inverted: "INVERTED" };

const namesFull = (error) => /whetstone\/core/.test(error.message) && /import "whetstone"/.test(error.message) && error.changed === "nothing";

test("has the names of the full engine, and is another engine", () => {
  assert.deepEqual(Object.keys(core).sort(), Object.keys(full).sort());
  const bytes = (file) => readFileSync(path.join(PACKAGE, "dist", file)).length;
  assert.ok(bytes("core/whetstone_bg.wasm") < bytes("whetstone_bg.wasm"));
});

for (const segments of [1, 3]) {
  test(`refreshes in Node, N = ${segments}, worker threads`, async (t) => {
    const folder = copyTable(t, "fragments_200");
    const requests = [];
    const table = await core.open(folder, { onRequest: (event) => requests.push(event) });
    const report = await table.refresh(INDEX, { segments, workers: 2 });
    assert.deepEqual(report.established, UNINDEXED);
    assert.equal(report.segments_added, segments);
    assert.ok(requests.some((event) => event.worker !== undefined && event.method === "PUT"), "workers built the segments");
    // The full engine finds what the core engine wrote complete and right.
    const seen = await full.open(folder);
    assert.deepEqual((await seen.index(INDEX)).unindexed_fragments, []);
    const audit = await seen.audit(INDEX);
    assert.deepEqual({ exact: audit.exact, findings: audit.findings }, { exact: true, findings: [] });
  });
}

test("plans what the full engine plans", async (t) => {
  const folder = copyTable(t, "fragments_200");
  const [a, b] = await Promise.all([full.open(folder), core.open(folder)]);
  assert.deepEqual(await b.planRefresh(INDEX, { segments: 3 }), await a.planRefresh(INDEX, { segments: 3 }));
  assert.deepEqual((await b.show()).indices, (await a.show()).indices);
});

test("creates, merges and drops", async (t) => {
  const folder = copyTable(t, "fragments_200");
  const table = await core.open(folder);
  await table.refresh(INDEX, { segments: 2 });
  const merged = await table.merge(INDEX);
  assert.equal(merged.segments_added, 1);
  await table.dropIndex(INDEX);
  await table.createIndex("again", "k", "ZONEMAP");
  assert.deepEqual((await (await full.open(folder)).indexes()).map((index) => [index.name, index.unindexed_fragments.length]).sort(), [["again", 0], ["v_idx", 200]]);
});

test("Chromium, two module workers", async (t) => {
  const browser = await launch();
  t.after(() => browser.close());
  const { page, workers, trouble, folder, target } = await visit(t, browser);
  const wasm = [];
  page.on("request", (request) => { if (request.url().endsWith(".wasm")) wasm.push(new URL(request.url()).pathname); });
  const report = await page.evaluate(async ({ target, index }) => {
    const { open } = await import("/dist/core/browser.js");
    return (await open(target)).refresh(index, { segments: 2, workers: 2 });
  }, { target, index: INDEX });
  assert.deepEqual(report.established, UNINDEXED);
  assert.deepEqual(wasm, ["/dist/core/whetstone_bg.wasm"]);
  assert.equal(workers.length, 2);
  assert.ok(workers.every((url) => url.endsWith("/core/worker.js")), workers.join());
  assert.deepEqual(trouble, []);
  assert.deepEqual((await (await full.open(folder)).index(INDEX)).unindexed_fragments, []);
});

test("methods it goes without are refused by name, with what to import instead", async (t) => {
  const table = await core.open(copyTable(t, ONE_OF_EACH));
  const before = table.version;
  const listed = (await table.indexes()).map((index) => index.name).sort();
  assert.deepEqual(listed, [...MAINTAINED, ...Object.keys(FULL_ONLY)].sort(), "they are shown all the same");
  for (const [index, method] of Object.entries(FULL_ONLY)) {
    const refused = (error) => error.code === "UNSUPPORTED_METHOD" && error.message.includes(`${method} indexes are maintained by the full engine`) && namesFull(error);
    await assert.rejects(table.planRefresh(index), refused);
    await assert.rejects(table.refresh(index), refused);
    await assert.rejects(table.planCreateIndex("new", "s", method), refused);
  }
  await table.reload();
  assert.equal(table.version, before);
  for (const index of MAINTAINED) assert.deepEqual((await table.refresh(index)).established, [0, 1], index);
});

test("jobs it goes without are refused by name", async (t) => {
  const table = await core.open(copyTable(t, "fragments_200"));
  const refused = (error) => error.code === "UNSUPPORTED_FEATURE" && namesFull(error);
  await assert.rejects(table.audit(INDEX), (error) => refused(error) && error.message.startsWith("audit "));
  await assert.rejects(table.probe(INDEX, "=", "1"), (error) => refused(error) && error.message.startsWith("probe "));
  await assert.rejects(table.column("k"), (error) => refused(error) && error.message.startsWith("column "));
  await assert.rejects(table.orphans(), (error) => refused(error) && error.message.startsWith("orphans "));
  assert.equal((await table.show()).version, said.version, "the engine is well after a refusal");
});

test("the declared exports of the glue are those of the full engine, and core has no others", async () => {
  const declared = [...readFileSync(path.join(ROOT, "js/whetstone.d.ts"), "utf8").matchAll(/^export function (\w+)/gm)].map((match) => match[1]);
  const has = async (file) => new Set(Object.keys(await import(path.join(PACKAGE, "dist", file))));
  const [whole, part] = [await has("whetstone.js"), await has("core/whetstone.js")];
  for (const name of declared) assert.ok(whole.has(name), name);
  for (const name of part) assert.ok(whole.has(name), name);
  for (const name of ["openTable", "tablePlanRefresh", "tablePlanCreateIndex", "tablePlanDropIndex", "tablePlanMerge", "tableCommitSegments", "buildSegment"]) assert.ok(part.has(name), name);
});
