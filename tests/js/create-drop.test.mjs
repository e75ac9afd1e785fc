// Creating and dropping an index through the package and the command.
import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { buildSegment, open, WhetstoneError } from "whetstone";
import { command, copyTable, expected, scratch } from "./support.mjs";

const NAME = "fragments_one_wide";
const said = expected(NAME);
const FRAGMENTS = said.fragments.map((fragment) => fragment.id);
const coverage = (segments) => segments.map((segment) => segment.fragment_ids);

test("an index is created in N segments, and its plan is data", async (t) => {
  const table = await open(copyTable(t, NAME));
  const plan = await table.planCreateIndex("new", "k", "BTREE", { segments: 2, params: { zone_size: 10 } });
  assert.deepEqual([plan.kind, plan.create, plan.index.params], ["create_index", { train: true, replace: false }, { zone_size: 10 }]);
  assert.deepEqual(plan.runs.flatMap((run) => run.fragments), FRAGMENTS);
  const events = [];
  const report = await table.run(structuredClone(JSON.parse(JSON.stringify(plan))), { onProgress: (event) => events.push(event) });
  assert.deepEqual([report.established, report.segments_added, report.version], [FRAGMENTS, 2, said.version + 1]);
  assert.equal(table.version, report.version, "the handle advanced");
  assert.deepEqual(coverage(await table.segments("new")), plan.runs.map((run) => run.fragments));
  assert.equal(events.at(-1).phase, "done");
});

test("a deferred index is only a definition, and a refresh fills it", async (t) => {
  const table = await open(copyTable(t, NAME));
  const report = await table.createIndex("later", "k", "ZONEMAP", { train: false });
  assert.deepEqual([report.established, report.segments_added], [[], 1]);
  assert.deepEqual(coverage(await table.segments("later")), [[]]);
  assert.deepEqual((await table.refresh("later")).established, FRAGMENTS);
});

test("the same plan may be built elsewhere and committed here", async (t) => {
  const table = await open(copyTable(t, NAME));
  const plan = await table.planCreateIndex("apart", "k", "BTREE");
  const built = await Promise.all(plan.tasks.map((task) => buildSegment(task, table.store)));
  assert.deepEqual((await table.commitSegments(plan, built)).established, FRAGMENTS);
});

test("a name that is taken is INDEX_EXISTS, and what was built for it is removed", async (t) => {
  const folder = copyTable(t, NAME);
  const [first, second] = [await open(folder), await open(folder)];
  const folders = () => readdirSync(path.join(folder, "_indices")).filter((name) => readdirSync(path.join(folder, "_indices", name)).length > 0).sort();
  const plan = await second.planCreateIndex("one", "k", "BTREE", { segments: 3 });
  await first.createIndex("one", "k", "BTREE");
  const before = folders();
  await assert.rejects(second.run(plan), (error) => error instanceof WhetstoneError && error.code === "INDEX_EXISTS" && error.changed === "nothing");
  assert.deepEqual(folders(), before);
  await assert.rejects(first.planCreateIndex("one", "k", "BTREE"), { code: "INDEX_EXISTS" });
  assert.equal((await first.createIndex("one", "k", "ZONEMAP", { replace: true })).segments_removed, 1);
});

test("bad requests are typed", async (t) => {
  const table = await open(copyTable(t, NAME));
  await assert.rejects(table.planCreateIndex("i", "nope", "BTREE"), { code: "COLUMN_NOT_FOUND" });
  await assert.rejects(table.planCreateIndex("i", "k", "IVF_PQ"), { code: "UNSUPPORTED_METHOD" });
  for (const columns of ["id, k", ["id", "k"]]) {
    await assert.rejects(table.planCreateIndex("i", columns, "BTREE"), { code: "UNSUPPORTED_METHOD", message: /2 columns \(id, k\).*Nothing was changed/ });
  }
  await assert.rejects(table.planCreateIndex("i", "k", "BTREE", { segments: 0 }), { code: "INVALID_ARGUMENT" });
  await assert.rejects(table.planCreateIndex("i", "k", "BTREE", { params: { page: 1 } }), { code: "INVALID_ARGUMENT" });
  await assert.rejects(table.planDropIndex("nope"), { code: "INDEX_NOT_FOUND" });
  await assert.rejects(table.run({ kind: "sharpen", format: 1 }), { code: "INVALID_ARGUMENT" });
});

test("a drop removes every segment; again it is nothing to do", async (t) => {
  const table = await open(copyTable(t, NAME));
  const plan = await table.planDropIndex("K_IDX");
  assert.deepEqual([plan.kind, plan.index.name, plan.segments.map((s) => s.fate)], ["drop_index", "k_idx", plan.segments.map(() => "REMOVED")]);
  const report = await table.run(plan);
  assert.deepEqual([report.segments_removed, report.version], [plan.segments.length, said.version + 1]);
  assert.ok(!(await table.indexes()).some((index) => index.name === "k_idx"));
  const again = await table.run(plan);
  assert.deepEqual([again.transaction, again.version], [null, report.version]);
  await assert.rejects(table.dropIndex("k_idx"), { code: "INDEX_NOT_FOUND" });
});

test("the command creates, shows, refuses and drops", async (t) => {
  const folder = copyTable(t, NAME);
  const dry = await command(["create-index", folder, "new", "k", "BTREE", "--num-segments", "2", "--dry-run"]);
  assert.equal(dry.status, 0, dry.stderr);
  assert.match(dry.stdout, /new \(BTREE on k\), planned on version/);
  const made = await command(["create-index", folder, "new", "k", "btree", "--num-segments", "2", "--param", "zone_size=100", "--quiet"]);
  assert.equal(made.status, 0, made.stderr);
  assert.match(made.stdout, /^new: created, \S+ fragments indexed/);
  const twice = await command(["create-index", folder, "new", "k", "BTREE"]);
  assert.equal(twice.status, 1);
  assert.match(twice.stderr, /has an index new already.*\[INDEX_EXISTS\]/);
  const deferred = await command(["create-index", folder, "later", "k", "ZONEMAP", "--deferred", "--quiet"]);
  assert.match(deferred.stdout, /^later: created, nothing indexed/);
  assert.equal((await command(["create-index", folder, "new", "k"])).status, 2);

  const plan = await command(["drop-index", folder, "new", "--dry-run", "--json"]);
  const file = path.join(scratch(t), "drop.json");
  writeFileSync(file, plan.stdout);
  assert.match((await command(["drop-index", folder, "new", "--dry-run"])).stdout, /drops 2 segments/);
  assert.match((await command(["drop-index", folder, "new", "--plan", file])).stdout, /^new: dropped, 2 segments/);
  assert.match((await command(["drop-index", folder, "new", "--plan", file])).stdout, /^new: gone already/);
  const wrong = await command(["refresh", folder, "new", "--plan", file]);
  assert.equal(wrong.status, 2);
  assert.match(wrong.stderr, /holds no plan of kind refresh/);
});

test("segments are merged, all or chosen ones", async (t) => {
  const folder = copyTable(t, NAME);
  const table = await open(folder);
  await table.refresh("k_idx", { segments: 4 });
  const before = await table.segments("k_idx");
  const chosen = before.slice(-2).map((segment) => segment.uuid);
  const some = await table.merge("k_idx", { only: chosen });
  assert.deepEqual([[...some.removed].sort(), some.segments_added], [[...chosen].sort(), 1]);
  const plan = await table.planMerge("k_idx", { segments: 2 });
  assert.deepEqual([plan.kind, plan.runs.length], ["merge", 2]);
  assert.deepEqual((await table.run(plan)).established, FRAGMENTS);
  const one = await command(["merge", folder, "k_idx", "--quiet"]);
  assert.equal(one.status, 0, one.stderr);
  assert.match(one.stdout, /^k_idx: \S+ fragments indexed/);
  assert.match((await command(["merge", folder, "k_idx"])).stdout, /nothing to do/);
  await assert.rejects(table.planMerge("k_idx", { only: [chosen[0]] }), { code: "INVALID_ARGUMENT" });
});
