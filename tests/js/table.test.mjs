// The package in Node: inspection of fixture tables by path and over `serve`, plans as data, handles.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { hostStore, httpStore, memoryStore, nodeFsStore, open, s3Store, WhetstoneError } from "whetstone";
import { serve } from "whetstone/serve";
import { copyTable, expected, fixtures, objectsOf, scratch } from "./support.mjs";

const TABLES = path.join(fixtures(), "tables");
const by = (code) => (error) => {
  assert.ok(error instanceof WhetstoneError, String(error.stack));
  assert.equal(error.code, code, error.message);
  return true;
};

test("the same answers by path, over serve, from memory and through callbacks", async (t) => {
  const serving = await serve({ root: TABLES });
  t.after(() => serving.close());
  for (const name of ["fragments_200", "deletions_small", "tags_and_versions", "segments_interleaved", "v1_manifest_paths"]) {
    const folder = path.join(TABLES, `${name}.lance`);
    const objects = objectsOf(folder);
    const targets = { path: folder, file: new URL(`file://${folder}`), http: `${serving.tables}${name}.lance`, memory: memoryStore(objects), nodeFs: nodeFsStore(folder) };
    const said = expected(name);
    for (const [kind, target] of Object.entries(targets)) {
      const table = await open(target);
      const show = await table.show();
      assert.equal(table.version, said.version, `${name} ${kind}`);
      assert.equal(table.rows, said.rows);
      assert.equal(show.fragments.count, said.fragments.length);
      const fragments = await table.fragments();
      assert.deepEqual(fragments.map((f) => [f.id, f.rows, f.num_deletions]), said.fragments.map((f) => [f.id, f.rows, f.num_deletions]));
      for (const index of said.indices) {
        const ours = show.indices.find((i) => i.name === index.name);
        assert.deepEqual(ours.unindexed_fragments, index.unindexed_fragments, `${name} ${kind} ${index.name}`);
        const segments = await table.segments(index.name.toUpperCase());
        assert.deepEqual(segments.map((s) => [s.uuid, s.fragment_ids]).sort(), index.segments.map((s) => [s.uuid, s.fragment_ids]).sort());
      }
      table.close();
    }
  }
});

test("typed columns say what the objects say", async () => {
  const table = await open(path.join(TABLES, "fragments_200.lance"));
  const columns = await table.fragmentColumns();
  const fragments = await table.fragments();
  assert.ok(columns.ids instanceof Uint32Array && columns.physical_rows instanceof Float64Array);
  assert.deepEqual([...columns.ids], fragments.map((f) => f.id));
  assert.deepEqual([...columns.physical_rows], fragments.map((f) => f.physical_rows));
  assert.deepEqual([...columns.deleted_rows], fragments.map((f) => f.num_deletions));
  assert.deepEqual([...columns.bytes], fragments.map((f) => f.data_files.reduce((sum, file) => sum + file.size, 0)));
  assert.deepEqual([...columns.files], fragments.map((f) => f.data_files.length));
  assert.deepEqual(columns.coverage.map((c) => c.index), (await table.indexes()).map((i) => i.name));
  for (const { index, uuids, segment } of columns.coverage) {
    for (const [i, fragment] of fragments.entries()) {
      const covering = fragment.covered_by[index] ?? [];
      assert.equal(segment[i] === -1, covering.length === 0);
      if (segment[i] !== -1) assert.ok(covering.includes(uuids[segment[i]]));
    }
  }
});

test("versions, tags, branches, at and reload", async () => {
  const said = expected("tags_and_versions");
  const table = await open(path.join(TABLES, "tags_and_versions.lance"));
  assert.deepEqual((await table.versions()).map((v) => v.version), said.versions);
  const tags = await table.tags();
  assert.deepEqual(Object.keys(tags).sort(), Object.keys(said.tags).sort());
  const [name] = Object.keys(tags);
  const tagged = await open(path.join(TABLES, "tags_and_versions.lance"), { tag: name });
  assert.equal(tagged.version, tags[name].version);
  const earlier = await table.at(said.versions[0]);
  assert.equal(earlier.version, said.versions[0]);
  assert.equal(table.version, said.version, "the other handle stays");
  assert.equal(await earlier.reload(), true);
  assert.equal(earlier.version, said.version);
  assert.equal(await earlier.reload(), false);
  await assert.rejects(table.at(10_000), by("VERSION_NOT_FOUND"));
  await assert.rejects(open(path.join(TABLES, "tags_and_versions.lance"), { tag: "nope" }), by("VERSION_NOT_FOUND"));
  const branched = expected("branch");
  const main = await open(path.join(TABLES, "branch.lance"));
  const [branch] = Object.keys(branched.branches);
  assert.equal((await main.branches())[branch].parent_version, branched.branches[branch].parent_version);
  const dev = await open(path.join(TABLES, "branch.lance"), { branch });
  assert.equal(dev.branch, branch);
  assert.equal(main.branch, null);
});

test("the schema is a tree", async () => {
  const table = await open(path.join(TABLES, "nested_fields.lance"));
  const flat = (fields) => fields.flatMap((f) => [f.name, ...flat(f.children)]);
  const names = flat(table.schema);
  assert.deepEqual(names, expected("nested_fields").manifest.fields.map((f) => f.name));
  assert.ok(table.schema.some((field) => field.children.length > 0));
});

test("arguments that mean nothing are refused before anything is asked", async () => {
  const asked = [];
  const store = hostStore({ get: async (name) => { asked.push(name); return null; }, list: async (name) => { asked.push(name); return []; } });
  await assert.rejects(open(store, { version: 0 }), by("INVALID_ARGUMENT"));
  await assert.rejects(open(store, { version: 1.5 }), by("INVALID_ARGUMENT"));
  await assert.rejects(open(store, { version: 2 ** 53 }), by("NUMBER_TOO_LARGE"));
  await assert.rejects(open(store, { version: 1, tag: "a" }), by("INVALID_ARGUMENT"));
  await assert.rejects(open("gopher://x"), by("INVALID_ARGUMENT"));
  await assert.rejects(open(""), by("INVALID_ARGUMENT"));
  await assert.rejects(open("s3://bucket"), by("INVALID_ARGUMENT"));
  assert.throws(() => httpStore("http://user:secret@127.0.0.1/t"), by("INVALID_ARGUMENT"));
  assert.throws(() => httpStore("http://127.0.0.1/t?signature=x"), by("INVALID_ARGUMENT"));
  assert.throws(() => s3Store("s3://b/k", { accessKeyId: "only half" }), by("INVALID_ARGUMENT"));
  assert.deepEqual(asked, []);
  await assert.rejects(open(store), by("TABLE_NOT_FOUND"));
  assert.ok(asked.length > 0);
});

test("a closed table answers nothing", async () => {
  const table = await open(path.join(TABLES, "one_row.lance"));
  table.close();
  table.close();
  await assert.rejects(table.show(), by("INVALID_ARGUMENT"));
  assert.throws(() => table.requests(), by("INVALID_ARGUMENT"));
});

test("a plan survives JSON and structured clone, and runs on another handle", async (t) => {
  const folder = copyTable(t, "fragments_200");
  const table = await open(folder);
  const plan = await table.planRefresh("K_IDX", { segments: 3 });
  assert.deepEqual(JSON.parse(JSON.stringify(plan)), plan);
  assert.deepEqual(structuredClone(plan), plan);
  assert.equal(plan.runs.length, 3);
  assert.equal(plan.tasks.length, 3);
  for (const task of plan.tasks) assert.ok(!("uuid" in task), "the attempt draws the uuid");
  const other = await open(folder);
  const report = await other.run(JSON.parse(JSON.stringify(plan)));
  assert.deepEqual(report.established, plan.sets.unindexed);
  assert.equal(report.version, plan.v_plan + 1);
  assert.equal(other.version, report.version, "the handle that committed advances");
  assert.equal(table.version, plan.v_plan, "the other does not");
  const transaction = await other.transaction(report.transaction);
  assert.equal(transaction.version, report.version);
  assert.equal(transaction.operation, "CreateIndex");
  assert.deepEqual(transaction.new.map((entry) => entry.uuid).sort(), report.added.toSorted());
  assert.equal(await other.transaction("00000000-0000-4000-8000-000000000000"), null);
});

test("nothing to do: a report of zeros and no new version", async (t) => {
  const folder = copyTable(t, "fragments_200");
  const table = await open(folder);
  await table.refresh("k_idx");
  const version = table.version;
  const before = readdirSync(folder, { recursive: true }).sort();
  const report = await table.refresh("k_idx");
  assert.equal(report.fragments_indexed, 0);
  assert.equal(report.transaction, null);
  assert.equal(report.version, version);
  assert.deepEqual(readdirSync(folder, { recursive: true }).sort(), before);
});

test("errors carry their code, what they are about, and what changed", async () => {
  const table = await open(path.join(TABLES, "fragments_200.lance"));
  await assert.rejects(table.planRefresh("nope"), (error) => {
    by("INDEX_NOT_FOUND")(error);
    assert.equal(error.changed, "nothing");
    assert.deepEqual(JSON.parse(JSON.stringify(error)), { code: error.code, message: error.message, detail: error.detail, changed: "nothing" });
    return true;
  });
  const others = await open(path.join(TABLES, "other_index_kinds.lance"));
  await assert.rejects(others.planRefresh("vec_idx"), by("UNSUPPORTED_METHOD"));
  await assert.rejects(table.planRefresh("k_idx", { segments: 0 }), by("INVALID_ARGUMENT"));
  await assert.rejects(table.planRefresh("k_idx", { params: { nonsense: 1 } }), by("INVALID_ARGUMENT"));
  await assert.rejects(table.planRefresh("k_idx", { absorb: "some" }), by("INVALID_ARGUMENT"));
  await assert.rejects(table.run({ kind: "compaction" }), by("INVALID_ARGUMENT"));
  await assert.rejects(table.run({ kind: "nonsense" }), by("INVALID_ARGUMENT"));
});

test("requests are counted and reported one by one", async () => {
  const events = [];
  const table = await open(path.join(TABLES, "fragments_200.lance"), { onRequest: (event) => events.push(event) });
  await table.show();
  const { count, bytes } = table.requests();
  assert.equal(events.length, count);
  assert.equal(events.reduce((sum, event) => sum + event.bytes, 0), bytes);
  assert.ok(events.every((event) => typeof event.method === "string" && event.ms >= 0));
  assert.ok(count <= 2, `opening and showing took ${count} requests`);
});

test("keys come from the callback, as often as they are needed, and sign the request", async (t) => {
  const { createServer } = await import("node:http");
  const seen = [];
  const server = createServer((req, res) => {
    seen.push({ url: req.url, ...req.headers });
    res.writeHead(404, { "Content-Type": "application/xml" }).end("<Error><Code>NoSuchKey</Code></Error>");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => { server.closeAllConnections(); server.close(); });
  let asked = 0;
  const store = s3Store("s3://bucket/t.lance", {
    endpoint: `http://127.0.0.1:${server.address().port}`,
    credentials: async () => ({ accessKeyId: `KEY${asked += 1}`, secretAccessKey: "secret", sessionToken: "token" }),
  });
  assert.ok(!JSON.stringify(store.descriptor).includes("secret"));
  await assert.rejects(open(store), WhetstoneError);
  assert.ok(asked > 0);
  assert.ok(seen.length > 0);
  for (const request of seen) assert.match(`${request.authorization} ${request.url}`, /KEY\d+/);
});
