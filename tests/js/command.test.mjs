// The command: one JSON document, exit status, text for people, serve.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { command, copyTable, expected, fixtures, PACKAGE, scratch } from "./support.mjs";

const TABLES = path.join(fixtures(), "tables");
const table = (name) => path.join(TABLES, `${name}.lance`);

async function json(args, options) {
  const { status, stdout, stderr } = await command([...args, "--json"], options);
  const document = JSON.parse(stdout); // exactly one document: anything before or after it would not parse
  return { status, document, stderr };
}

test("show, fragments, segments: one document on stdout and nothing else", async () => {
  const said = expected("fragments_200");
  const show = await json(["show", table("fragments_200")]);
  assert.equal(show.status, 0);
  assert.equal(show.stderr, "");
  assert.equal(show.document.version, said.version);
  assert.equal(show.document.requests.count, 2);
  const fragments = await json(["fragments", table("fragments_200")]);
  assert.deepEqual(fragments.document.fragments.map((f) => f.id), said.fragments.map((f) => f.id));
  const all = await json(["segments", table("fragments_200")]);
  assert.deepEqual(all.document.indices.map((i) => i.name).sort(), said.indices.map((i) => i.name).sort());
  const one = await json(["segments", table("fragments_200"), "K_Idx"]);
  assert.deepEqual(one.document.indices.map((i) => i.name), ["k_idx"]);
});

test("plan, refresh from a plan, transaction", async (t) => {
  const folder = copyTable(t, "fragments_200");
  const plan = await json(["plan", folder, "k_idx", "--segments", "3"]);
  assert.equal(plan.document.runs.length, 3);
  const dry = await json(["refresh", folder, "k_idx", "--num-segments", "3", "--dry-run"]);
  assert.deepEqual(dry.document.runs, plan.document.runs);
  const refresh = await json(["refresh", folder, "k_idx", "--plan", "-", "--workers", "2"], { input: JSON.stringify(plan.document) });
  assert.equal(refresh.status, 0);
  assert.deepEqual(refresh.document.established, plan.document.sets.unindexed);
  assert.match(refresh.stderr, /segment 3 of 3: done/, "progress in lines where there is no terminal");
  const transaction = await json(["transaction", folder, refresh.document.transaction]);
  assert.equal(transaction.document.version, refresh.document.version);
  const again = await command(["refresh", folder, "k_idx"]);
  assert.equal(again.status, 0);
  assert.match(again.stdout, /nothing to do, still version/);
  const earlier = await json(["show", folder, "--at", String(refresh.document.version_before)]);
  assert.equal(earlier.document.version, refresh.document.version_before);
  const quiet = await command(["refresh", copyTable(t, "fragments_200"), "k_idx", "--quiet"]);
  assert.equal(quiet.stderr, "");
});

test("text for people is a table", async () => {
  const show = await command(["show", table("fragments_200")]);
  assert.match(show.stdout, /^INDEX +TYPE +COLUMN +COVERED +UNINDEXED +SEGMENTS +SIZE$/m);
  assert.match(show.stdout, /^k_idx +BTree +k +\d\d\.\d\d % +100 fragments +2 +[\d.]+ kB$/m);
  const plan = await command(["plan", table("fragments_200"), "k_idx", "--num-segments", "2"]);
  assert.match(plan.stdout, /^ +1 +\d+ +100–\d+$/m);
  assert.match(plan.stdout, /KEPT +\S/);
  assert.equal((await command(["segments", table("segments_interleaved")])).status, 0);
  assert.match((await command(["fragments", table("deletions_small")])).stdout, /^FRAGMENT +ROWS +DELETED/m);
});

test("exit 1: failed, nothing committed", async () => {
  const missing = await json(["show", path.join(TABLES, "nothing-here")]);
  assert.equal(missing.status, 1);
  assert.equal(missing.document.error.code, "TABLE_NOT_FOUND");
  assert.equal(missing.document.error.changed, "nothing");
  assert.equal((await json(["plan", table("fragments_200"), "nope"])).document.error.code, "INDEX_NOT_FOUND");
  assert.equal((await json(["transaction", table("fragments_200"), "x"])).document.error.code, "INVALID_ARGUMENT");
  const text = await command(["plan", table("other_index_kinds"), "t_fm"]);
  assert.equal(text.status, 1);
  assert.equal(text.stdout, "");
  assert.match(text.stderr, /FM.*\[UNSUPPORTED_METHOD\]\n$/);
  assert.doesNotMatch(text.stderr, /\n\s+at /, "no bare stack");
});

test("exit 2: wrong usage", async () => {
  const wrong = [
    ["plan", "x"], ["plan", "x", "i", "--num-segments", "0"], ["plan", "x", "i", "--num-segments", "many"], ["plan", "x", "i", "--segments", "1", "--num-segments", "2"],
    ["plan", "x", "i", "--at", "0x1"], ["plan", "x", "i", "--bogus"], ["plan", "x", "i", "--param", "nokey"], ["show", "x", "--at", "1", "--tag", "t"],
    ["show"], ["show", "a", "b"], ["nonsense"], ["--json"], ["refresh", "x", "i", "--plan", "/no/such/file"], ["serve", "/no/such/folder"], ["serve", ".", "--port", "70000"],
    ["show", "x", "--store", "ftp"], ["plan", "x", "i", "--workers", "2"], ["show", "x", "--at", "99999999999999999999"],
    ["toString", "x"], ["constructor"],
  ];
  for (const args of wrong) {
    const { status, stdout, stderr } = await command(args);
    assert.equal(status, 2, args.join(" "));
    if (!args.includes("--json")) assert.equal(stdout, "");
    assert.ok(args.includes("--json") || stderr.startsWith("whetstone: "), args.join(" "));
  }
  assert.equal((await json(["plan", "x", "i", "--num-segments", "0"])).document.error.code, "INVALID_ARGUMENT");
});

test("exit 3: the outcome is not known, and the message says how to find out", async (t) => {
  const { createServer, request } = await import("node:http");
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder, "t");
  const { serve } = await import("whetstone/serve");
  const behind = await serve({ root: folder, writable: true });
  t.after(() => behind.close());
  // A proxy that forwards everything until the manifest is written; then the network is gone.
  let gone = false;
  const proxy = createServer((req, res) => {
    if (req.method === "PUT" && /\/_versions\//.test(req.url)) gone = true;
    if (gone) return req.socket.destroy();
    const forward = request(behind.url + req.url.slice(1), { method: req.method, headers: { ...req.headers, host: new URL(behind.url).host } }, (answer) => {
      res.writeHead(answer.statusCode, answer.headers);
      answer.pipe(res);
    });
    req.pipe(forward);
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  t.after(() => { proxy.closeAllConnections(); proxy.close(); });
  const { status, document } = await json(["refresh", `http://127.0.0.1:${proxy.address().port}/tables/t.lance`, "k_idx"]);
  assert.equal(document.error?.code, "COMMIT_UNKNOWN");
  assert.equal(document.error.changed, "unknown");
  assert.equal(status, 3);
  const segments = readdirSync(path.join(folder, "t.lance/_indices"));
  assert.ok(segments.length > 3, "nothing is deleted while the outcome is unknown");
});

test("help lists every command and every option of each", async () => {
  const help = await command(["help"]);
  assert.equal(help.status, 0);
  for (const name of ["show", "fragments", "segments", "plan", "refresh", "transaction", "serve"]) {
    assert.match(help.stdout, new RegExp(`^  ${name} `, "m"));
    assert.match((await command([name, "--help"])).stdout, new RegExp(`^whetstone ${name} `));
  }
  // What is written stands apart from what it means, however long it is.
  for (const name of ["refresh", "merge", "create-index", "serve", "store-check"]) {
    const { stdout } = await command([name, "--help"]);
    for (const line of stdout.split("\n").filter((text) => text.startsWith("  --"))) assert.match(line, /^ {2}--[a-z-]+( [A-Z=]+)?(, --[a-z]+)? {2,}\S/);
  }
});

test("segments whose files cannot be read are named, with the sentence, and it is a failure", async (t) => {
  const folder = copyTable(t, "fragments_200");
  const [first, second] = (await json(["segments", folder, "k_idx"])).document.indices[0].segments;
  for (const name of readdirSync(path.join(folder, "_indices", first.uuid))) writeFileSync(path.join(folder, "_indices", first.uuid, name), "no index file");
  const text = await command(["segments", folder, "k_idx"]);
  assert.equal(text.status, 1);
  assert.match(text.stdout, new RegExp(`^k_idx +${first.uuid} .* unreadable$`, "m"));
  assert.match(text.stdout, new RegExp(`^k_idx +${second.uuid} .* ok$`, "m"));
  assert.match(text.stdout, new RegExp(`^${first.uuid}\\ncannot be read: _indices/${first.uuid}/page_data\\.lance: .* \\[CORRUPT_FILE\\]$`, "m"));
  assert.doesNotMatch(text.stdout, /"error"/);
  const { status, document } = await json(["segments", folder, "k_idx"]);
  assert.equal(status, 1);
  const { error } = document.contents.find(({ uuid }) => uuid === first.uuid).contents;
  assert.deepEqual([error.code, error.changed, error.detail.object], ["CORRUPT_FILE", "nothing", `_indices/${first.uuid}/page_data.lance`]);
  // Whatever else needs the file names it as it lies in the table.
  for (const args of [["probe", folder, "k_idx", "=", "3"], ["compact", folder, "--param", "target_rows_per_fragment=100000"]]) {
    const failed = await json(args);
    assert.equal(failed.status, 1);
    assert.match(failed.document.error.message, new RegExp(`_indices/${first.uuid}/page_(lookup|data)\\.lance`));
  }
});

test("options of a compaction that mean nothing are refused, and fragments are excluded by a list", async () => {
  for (const option of ["target_rows_per_fragment=0", "batch_size=0", "batch_size=4294967296", "num_threads=0"]) {
    const { status, document } = await json(["compact", table("fragments_200"), "--dry-run", "--param", option]);
    assert.deepEqual([status, document.error.code, document.error.changed], [1, "INVALID_ARGUMENT", "nothing"], option);
    assert.ok(document.error.message.startsWith(`${option.split("=")[0]} must be `), document.error.message);
  }
  const excluded = ({ document }) => document.skipped.filter(({ rule }) => rule === "excluded").map(({ fragment }) => fragment);
  for (const [value, ids] of [["0,1", [0, 1]], ["7", [7]], ["[2,3]", [2, 3]]]) {
    assert.deepEqual(excluded(await json(["compact", table("fragments_200"), "--dry-run", "--param", `excluded_fragment_ids=${value}`])), ids);
  }
  const wrong = await json(["compaction", table("fragments_200"), "--param", "excluded_fragment_ids=0;1"]);
  assert.deepEqual([wrong.status, wrong.document.error.message], [2, "excluded_fragment_ids takes fragment ids, as in 3,4, not 0;1"]);
});

test("serve prints its address, serves, and ends on a signal", async (t) => {
  const folder = scratch(t);
  copyTable(t, "one_row", folder, "t");
  const child = spawn(process.execPath, [path.join(PACKAGE, "bin/whetstone.js"), "serve", folder, "--port", "0", "--json", "--writable"], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  let text = "";
  const address = await new Promise((resolve, reject) => {
    child.on("exit", () => reject(new Error(text)));
    child.stdout.on("data", (chunk) => {
      text += chunk;
      try {
        resolve(JSON.parse(text));
      } catch { /* more to come */ }
    });
  });
  assert.match(address.tables, /^http:\/\/127\.0\.0\.1:\d+\/tables\/$/);
  const show = await json(["show", `${address.tables}t.lance`]);
  assert.equal(show.document.version, expected("one_row").version);
  const ended = new Promise((resolve) => child.on("exit", (status) => resolve(status)));
  child.kill("SIGTERM");
  assert.equal(await ended, 0);
});

test("an address that is none is a mistake of the caller's", async () => {
  for (const target of ["file://elsewhere/users.lance", "file:///tmp/%zz"]) {
    const { status, document } = await json(["show", target]);
    assert.equal(status, 1);
    assert.equal(document.error.code, "INVALID_ARGUMENT");
    assert.ok(document.error.message.startsWith(target));
  }
});

test("an address that was not understood is shown without what is secret in it", async () => {
  const addresses = [
    "http://user:SECRET@127.0.0.1:99999/x", "http://user:SECRET@[::1/x", "https://user:SECRET@ho st/x", "http://user:SECRET@/x", "http://user:SEC?SECRET#@ho st/x",
    "file://user:SECRET@host/x", "ftp://user:SECRET@h/x", "user:SECRET@host/x", "http://ho st/x?sig=SECRET",
  ];
  await Promise.all(addresses.map(async (address) => {
    const { status, stdout, stderr } = await command(["show", address, "--json"]);
    assert.notEqual(status, 0, address);
    assert.doesNotMatch(stdout + stderr, /SECRET/, address);
  }));
});

test("a negative number is a value, and a file that cannot be written the caller's mistake", async () => {
  const before = await json(["probe", table("fragments_200"), "k_idx", ">=", "-5"]);
  assert.equal(before.status, 0, before.stderr);
  const after = await command(["probe", table("fragments_200"), "k_idx", ">=", "--json", "--", "-5"]);
  assert.deepEqual(before.document, JSON.parse(after.stdout));
  const { status, document } = await json(["column", table("fragments_200"), "k", "--arrow", path.join(TABLES, "no", "such", "folder")]);
  assert.deepEqual([status, document.error?.code ?? document.code], [2, "INVALID_ARGUMENT"]);
});

test("text for people holds nothing that a terminal obeys", async () => {
  const { status, stderr } = await command(["plan", table("fragments_200"), "\x1b[2J\u202ek\n_idx"]);
  assert.equal(status, 1);
  assert.match(stderr, /no index \\u\{1b\}\[2J\\u\{202e\}k\\u\{a\}_idx;/);
});

test("many segments: nothing but progress on stderr", async (t) => {
  const { status, stderr } = await command(["refresh", copyTable(t, "fragments_200"), "k_idx", "--num-segments", "60", "--quiet"]);
  assert.equal(status, 0);
  assert.equal(stderr, "");
});

test("a refresh that failed says that nothing was changed", async (t) => {
  const folder = copyTable(t, "fragments_200");
  rmSync(path.join(folder, "data"), { recursive: true });
  const { status, stderr } = await command(["refresh", folder, "k_idx", "--quiet"]);
  assert.equal(status, 1);
  assert.match(stderr, /there is no such object\. Nothing was changed \[CORRUPT_FILE\]/);
});

test("a plan that was tampered with is refused before anything is built", async (t) => {
  const folder = copyTable(t, "fragments_200");
  const file = path.join(scratch(t), "plan.json");
  const { document: good } = await json(["plan", folder, "k_idx", "--num-segments", "2"]);
  const indices = readdirSync(path.join(folder, "_indices"));
  const change = {
    "no tasks": (plan) => { delete plan.tasks; }, "tasks of nothing": (plan) => { plan.tasks = [null]; }, "tasks no list": (plan) => { plan.tasks = {}; },
    "no format": (plan) => { delete plan.format; }, "format 99": (plan) => { plan.format = 99; }, "version 1e300": (plan) => { plan.v_plan = 1e300; },
    "rows": (plan) => { plan.tasks[0].rows = -1; }, "version of a task": (plan) => { plan.tasks[1].v_plan = 1; }, "no index of a task": (plan) => { plan.tasks[1].index = null; },
    "name": (plan) => { plan.tasks[1].index.name = "v_idx"; }, "field": (plan) => { plan.tasks[1].index.field_id = 0; }, "method": (plan) => { plan.tasks[0].index.method = "BITMAP"; },
    "branch": (plan) => { plan.branch = 7; },
    "params": (plan) => { plan.tasks[0].index.params = null; }, "deletion": (plan) => { plan.runs[0].files[0].deletion = ""; },
    "deletion elsewhere": (plan) => { plan.runs[0].files[0].deletion = "../../x.bin"; }, "data path": (plan) => { plan.runs[0].files[0].data[0].path = "a//b"; },
    "no fragments": (plan) => { plan.tasks[0].fragments = []; }, "fragments no list": (plan) => { plan.tasks[0].fragments = 7; },
  };
  for (const [what, edit] of Object.entries(change)) {
    const plan = structuredClone(good);
    edit(plan);
    writeFileSync(file, JSON.stringify(plan));
    const { status, document } = await json(["refresh", folder, "k_idx", "--plan", file, "--quiet"]);
    assert.equal(status, 1, what);
    assert.equal(document.error.code, "INVALID_ARGUMENT", what);
    assert.equal(document.error.changed, "nothing", what);
    if (what === "params") assert.match(document.error.message, /^the plan: tasks\[0\]\.index\.params: /);
    assert.deepEqual(readdirSync(path.join(folder, "_indices")), indices, what);
  }
  // Names that are sound but of another table.
  const plan = structuredClone(good);
  plan.runs[0].files[0].data[0].path = "elsewhere.lance";
  writeFileSync(file, JSON.stringify(plan));
  const { document } = await json(["refresh", folder, "k_idx", "--plan", file, "--quiet"]);
  assert.equal(document.error.code, "STALE_PLAN");
  assert.deepEqual(readdirSync(path.join(folder, "_indices")), indices);
});

test("what was built for a plan that the commit refuses is removed again", async (t) => {
  const folder = copyTable(t, "fragments_200");
  const file = path.join(scratch(t), "plan.json");
  const { document: plan } = await json(["plan", folder, "k_idx"]);
  plan.tasks[0].fragments = [plan.sets.covered[0]];
  writeFileSync(file, JSON.stringify(plan));
  const files = () => readdirSync(path.join(folder, "_indices"), { recursive: true }).filter((name) => name.endsWith(".lance"));
  const before = files();
  const { status, document } = await json(["refresh", folder, "k_idx", "--plan", file, "--quiet"]);
  assert.equal(status, 1);
  assert.equal(document.error.code, "INVALID_ARGUMENT");
  assert.equal(document.error.changed, "nothing");
  assert.deepEqual(files(), before);
});

test("a plan for another index, or no plan at all, is refused", async (t) => {
  const folder = copyTable(t, "fragments_200");
  const file = path.join(scratch(t), "plan.json");
  writeFileSync(file, "{}");
  assert.equal((await command(["refresh", folder, "k_idx", "--plan", file])).status, 2);
  writeFileSync(file, JSON.stringify((await json(["plan", folder, "k_idx"])).document));
  assert.equal((await command(["refresh", folder, "v_idx", "--plan", file])).status, 2);
  const plan = JSON.parse(readFileSync(file, "utf8"));
  plan.format = 99;
  writeFileSync(file, JSON.stringify(plan));
  const refused = await json(["refresh", folder, "k_idx", "--plan", file]);
  assert.equal(refused.status, 1);
  assert.equal(refused.document.error.changed, "nothing");
  rmSync(file);
});

test("versions are counted from 1, and a target that is no address is not taken for a folder", async (t) => {
  const folder = copyTable(t, "one_row");
  for (const at of [["--at", "-1"], ["--at=-1"], ["--at", "0"]]) {
    const { status, stderr } = await command(["show", folder, ...at]);
    assert.equal(status, 2);
    assert.match(stderr, /--at takes a whole number of at least 1, not (-1|0) \(versions are counted from 1/);
  }
  for (const target of ["http:", "https:/x", "data:,x", "ftp://h/t.lance", "s3:/b/k"]) {
    const { status, document } = await json(["show", target]);
    assert.equal(status, 1, target);
    assert.equal(document.error.code, "INVALID_ARGUMENT", target);
    assert.match(document.error.message, /address/, target);
  }
});

test("a very long index name does not widen the table; JSON has all of it", async (t) => {
  const folder = copyTable(t, "odd_index_names");
  const { stdout } = await command(["show", folder]);
  const { document } = await json(["show", folder]);
  const longest = document.indices.map((index) => index.name).sort((a, b) => b.length - a.length)[0];
  const head = stdout.split("\n").find((line) => line.startsWith("INDEX"));
  assert.ok(head.indexOf("TYPE") <= 48 + 3, head);
  if ([...longest].length > 48) assert.ok(stdout.includes("…"));
});

test("column: values as JSON lines, one document, or Arrow", async (t) => {
  const folder = copyTable(t, "deletions_small");
  const { document: all } = await json(["column", folder, "k"]);
  const shown = (await json(["show", folder])).document;
  assert.equal(all.values.length, shown.rows);
  assert.deepEqual(Object.keys(all).sort(), ["branch", "column", "type", "uri", "values", "version"]);
  assert.ok(all.values.every((row) => /^\d+$/.test(row.address)), "addresses are decimal texts");
  const lines = (await command(["column", folder, "k", "--limit", "3"])).stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines, all.values.slice(0, 3));
  const fragment = (await json(["column", folder, "k", "--fragment", "0"])).document.values;
  assert.deepEqual(fragment, all.values.filter((row) => BigInt(row.address) >> 32n === 0n));
  const file = path.join(scratch(t), "k.arrow");
  assert.equal((await command(["column", folder, "k", "--arrow", file])).stdout, "");
  assert.equal(readFileSync(file).subarray(0, 4).toString("hex"), "ffffffff", "an IPC stream");
  const missing = await json(["column", folder, "k", "--fragment", "77"]);
  assert.equal(missing.document.error.code, "INVALID_ARGUMENT");
  assert.equal((await json(["column", folder, "nope"])).document.error.code, "COLUMN_NOT_FOUND");
});
