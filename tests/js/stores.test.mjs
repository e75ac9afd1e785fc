// What stores do: the public conformance suite on those that need no server of others, and what becomes of one that fails it.
import assert from "node:assert/strict";
import { mkdirSync, readdirSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { azureStore, conformance, gcsStore, hostStore, httpStore, memoryStore, nodeFsStore, open, r2Store, s3Store, WorkerPool } from "whetstone";
import { serve } from "whetstone/serve";
import { folderStore } from "../../pkg/dist/node-fs.js";
import { listen } from "./s3-server.mjs";
import { command, copyTable, expected, objectsOf, scratch } from "./support.mjs";

/** Every check but those named passed, and nothing is left. */
function conforms(report, except = []) {
  const rest = report.checks.filter((check) => check.status !== "ok" && !except.includes(check.name));
  assert.deepEqual(rest, [], JSON.stringify(rest));
  assert.equal(report.commits, "safe", report.verdict);
  assert.equal(report.readable, true);
  assert.deepEqual(report.left, []);
  for (const name of ["write", "names", "ranges", "listing", "many", "read_after_write", "delete", "create", "race", "clock"]) {
    assert.equal(report.checks.filter((check) => check.name === name).length, 1, name);
  }
  assert.match(report.checks.find((check) => check.name === "race").seen, /in 20 races of 12 writers/);
}

/** A host store over a map; `wrong` names what is wrong with it. */
function hostOver(objects, wrong = {}) {
  const calls = { put: 0 };
  const store = hostStore({
    async get(name, range) {
      const bytes = objects.get(name);
      return bytes === undefined ? null : { data: range === null ? bytes : bytes.slice(range.start, range.end), size: bytes.length };
    },
    async list(folder) {
      return [...objects].filter(([name]) => name.slice(0, name.lastIndexOf("/")) === folder).map(([name, bytes]) => ({ name: name.slice(folder.length + 1), size: bytes.length }));
    },
    async put(name, chunks, { create }) {
      calls.put += 1;
      const there = objects.has(name);
      if (wrong.looksFirst) await new Promise((resolve) => setTimeout(resolve, 1));
      if (create && there && !wrong.ignores) return "exists";
      objects.set(name, new Uint8Array(Buffer.concat(chunks)));
      return "written";
    },
    async delete(name) { objects.delete(name); },
  }, wrong.options);
  return { store, calls };
}

test("memory conforms, and is as it was", async () => {
  const objects = new Map([["kept", new Uint8Array(3)]]);
  const report = await conformance(memoryStore(objects));
  conforms(report);
  assert.deepEqual([...objects.keys()], ["kept"]);
  assert.deepEqual(report.create_if_absent, { spelling: "a look and a write in one step", loser: "the object is there" });
});

test("a folder of this machine conforms, and is as it was", async (t) => {
  const folder = scratch(t);
  conforms(await conformance(nodeFsStore(folder)));
  assert.deepEqual(readdirSync(folder), []);
  // Also where there was none.
  conforms(await conformance(nodeFsStore(path.join(folder, "a/b")), { quick: true }), ["many"]);
  assert.deepEqual(readdirSync(folder), []);
});

test("folders made for a write that fails go again, others stay", async (t) => {
  const folder = scratch(t);
  mkdirSync(path.join(folder, "mine/empty"), { recursive: true });
  const { put, delete: remove } = folderStore(folder);
  const one = () => [new Uint8Array([1])];
  const long = "x".repeat(300);
  for (const create of [true, false]) {
    await assert.rejects(put(`a/b/${long}`, one(), { create }), { status: 414 });
    await assert.rejects(put(`mine/empty/${long}`, one(), { create }), { status: 414 });
    assert.deepEqual(readdirSync(folder), ["mine"]);
  }
  assert.deepEqual(readdirSync(path.join(folder, "mine")), ["empty"]);
  await put("a/kept", one(), { create: true });
  await put("a/b/gone", one(), { create: true });
  await put("mine/empty/gone", one(), { create: true });
  await remove("a/b/gone");
  await remove("mine/empty/gone");
  assert.deepEqual([readdirSync(path.join(folder, "a")), readdirSync(path.join(folder, "mine"))], [["kept"], ["empty"]]);
  // A failing write and good ones in the folder that both of them make.
  await Promise.all(Array.from({ length: 40 }, (_, i) => (i % 2 === 0
    ? assert.rejects(put(`c/d/${long}`, one(), { create: true }), { status: 414 }) : put(`c/d/${i}`, one(), { create: true }))));
  assert.equal(readdirSync(path.join(folder, "c/d")).length, 20);
});

test("whetstone serve conforms, read-only and writable", async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder, "t");
  const before = readdirSync(path.join(folder, "t.lance")).sort();
  const writable = await serve({ root: folder, writable: true, origins: ["https://page.example"] });
  t.after(() => writable.close());
  conforms(await conformance(httpStore(`${writable.tables}t.lance`)));
  assert.deepEqual(readdirSync(path.join(folder, "t.lance")).sort(), before);

  const readOnly = await serve({ root: folder });
  t.after(() => readOnly.close());
  const report = await conformance(httpStore(`${readOnly.tables}t.lance`));
  assert.equal(report.commits, "unknown");
  assert.equal(report.readable, true, report.verdict);
  assert.equal(report.checks.find((check) => check.name === "ranges").status, "ok");
  assert.deepEqual(report.left, []);
  // Without leave for that page: what to paste, for whom.
  assert.equal(report.checks.find((check) => check.name === "cors_read").status, "warning");
  assert.ok(report.remedies.some((remedy) => remedy.where === "nginx" && remedy.paste.includes("Access-Control-Expose-Headers")));
});

test("the command says what is wrong, and what to do", async (t) => {
  const folder = scratch(t);
  const good = await command(["store-check", folder, "--quick", "--contenders", "4", "--rounds", "3"]);
  assert.equal(good.status, 0, good.stdout + good.stderr);
  assert.match(good.stdout, /can be read and committed to\.$/m);
  const document = JSON.parse((await command(["store-check", folder, "--quick", "--json"])).stdout);
  assert.equal(document.commits, "safe");
  assert.equal((await command(["store-check", folder, "--rounds", "0"])).status, 2);
});

test("stores whose writers overwrite each other are read-only, unless the caller says otherwise", async (t) => {
  const folder = copyTable(t, "fragments_200");
  for (const [wrong, sentence] of [[{ ignores: true }, /ignores the condition/], [{ looksFirst: true }, /looks right one request at a time, but in \d+ of 20 races of 12 writers/]]) {
    const objects = objectsOf(folder);
    const before = [...objects.keys()].sort();
    const { store, calls } = hostOver(objects, wrong);
    const table = await open(store);
    const plan = await table.planRefresh("k_idx");
    const refused = await table.run(plan).then(() => null, (error) => error);
    assert.equal(refused?.code, "STORE_UNSAFE", String(refused));
    assert.equal(refused.changed, "nothing");
    assert.match(refused.message, sentence);
    assert.deepEqual([...objects.keys()].sort(), before, "nothing was built, and the check is gone");
    const raced = calls.put;
    await assert.rejects(table.run(plan), { code: "STORE_UNSAFE" });
    assert.equal(calls.put, raced, "what is known is not tried again");
    const report = await conformance(store, { quick: true });
    assert.equal(report.commits, "unsafe");
    assert.match(report.verdict, sentence);
    assert.ok(report.remedies.length > 0);

    const anyway = hostOver(objects, { ...wrong, options: { unsafeCommits: true } });
    const done = await (await open(anyway.store)).refresh("k_idx");
    assert.equal(done.version, expected("fragments_200").version + 1);
  }
});

test("a host store that proves itself is committed to, and is raced once", async (t) => {
  const { store, calls } = hostOver(objectsOf(copyTable(t, "fragments_200")));
  const table = await open(store);
  const report = await table.refresh("k_idx");
  assert.equal(report.segments_added, 1);
  assert.ok(calls.put > 240, "12 writers, 20 races");
  const before = calls.put;
  await (await open(store)).dropIndex("k_idx");
  assert.ok(calls.put - before <= 3, `${calls.put - before} writes`);
});

test("a signer signs every request, also those of workers, and nothing else of them is kept", async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder, "t");
  const unsigned = [];
  const endpoint = await listen(t, folder, (request) => {
    if (request.url.includes("sig=topsecret") && request.headers.authorization === undefined) return null;
    unsigned.push(request.url);
    return [403, "AccessDenied"];
  });
  const asked = [];
  const events = [];
  const store = s3Store("s3://bkt/t.lance", {
    unsafeCommits: true,
    signer({ method, bucket, key, query, headers }) {
      asked.push({ method, key, headers });
      const url = new URL(`${endpoint}/${bucket}/${key.split("/").map(encodeURIComponent).join("/")}`);
      for (const [name, value] of Object.entries({ ...query, sig: "topsecret" })) url.searchParams.set(name, value);
      return url;
    },
  });
  const table = await open(store, { onRequest: (event) => events.push(event) });
  const pool = new WorkerPool({ size: 2 });
  const plan = await table.planRefresh("k_idx", { segments: 2 });
  const report = await table.run(plan, { pool });
  await pool.close();
  assert.equal(report.segments_added, 2);
  assert.deepEqual(unsigned, []);
  assert.ok(asked.some(({ method, key, headers }) => method === "PUT" && key.includes("_versions/") && headers["if-none-match"] === "*"), "the condition can be signed");
  assert.ok(!JSON.stringify([plan, report, events, table.uri, store.descriptor, store.uri]).includes("topsecret"));
  assert.throws(() => s3Store("s3://bkt/t.lance", { signer: () => null, accessKeyId: "a", secretAccessKey: "b" }), { code: "INVALID_ARGUMENT" });
  const broken = s3Store("s3://bkt/t.lance", { signer: () => { throw new Error("https://host/?sig=topsecret"); } });
  const error = await open(broken).then(() => null, (failure) => failure);
  assert.equal(error.code, "STORE_DENIED");
  assert.ok(!JSON.stringify(error).includes("topsecret"));
});

test("credentials are asked for as often as they are needed, also by workers", async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder, "t");
  // Keys live for three requests; the server takes the newest two dozen.
  let calls = 0;
  const generation = () => Math.floor(calls / 3);
  const old = [];
  const endpoint = await listen(t, folder, (request) => {
    const number = Number(/Credential=KEY(\d+)\//.exec(request.headers.authorization ?? decodeURIComponent(request.url))?.[1] ?? NaN);
    if (generation() - number < 24) return null;
    old.push(number);
    return [400, "ExpiredToken"];
  });
  const store = s3Store("s3://bkt/t.lance", {
    endpoint, unsafeCommits: true,
    credentials: () => { calls += 1; return { accessKeyId: `KEY${generation()}`, secretAccessKey: "topsecret", sessionToken: "token" }; },
  });
  const table = await open(store);
  const pool = new WorkerPool({ size: 2 });
  const report = await table.refresh("k_idx", { segments: 2, pool });
  await pool.close();
  assert.equal(report.segments_added, 2);
  assert.ok(generation() > 24, `${calls} calls: the first keys would have run out`);
  assert.deepEqual(old, []);
  assert.ok(!JSON.stringify([store.descriptor, report]).includes("topsecret"));
});

test("each store says how it creates; what makes no sense is refused", () => {
  const blob = "https://acct.blob.core.windows.net/c/t.lance";
  assert.match(azureStore(blob).createIfAbsent.loser, /409/);
  assert.match(gcsStore("gs://b/t.lance").createIfAbsent.spelling, /x-goog-if-generation-match: 0/);
  assert.match(s3Store("s3://b/t.lance", { anonymous: true }).createIfAbsent.loser, /412/);
  assert.equal(azureStore("az://c/t.lance", { account: "acct", sas: "?sv=1&sig=x" }).descriptor.endpoint, "https://acct.blob.core.windows.net");
  assert.equal(s3Store("s3://b/t.lance", { anonymous: true, pathStyle: false }).descriptor.virtual_hosted, true);
  const bucket = { get() {}, list() {}, put() {}, head() {}, delete() {} };
  assert.equal(r2Store(bucket, "a/b/").createIfAbsent.loser, "null");
  for (const make of [
    () => azureStore("az://c/t.lance"), () => azureStore(`${blob}?sig=x`), () => azureStore("az://c/t", { account: "No/pe" }), () => azureStore("ftp://h/c/t"),
    () => gcsStore("s3://b/t"), () => gcsStore("gs://b/t?x=1"), () => r2Store({}, "t"), () => r2Store(undefined, "t"),
  ]) assert.throws(make, { code: "INVALID_ARGUMENT" });
});
