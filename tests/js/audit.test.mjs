// Looking into indexes, and holding them against their columns, through the package and the command.
import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { open } from "whetstone";
import { command, copyTable, expected, fixtures } from "./support.mjs";

const table = (name) => path.join(fixtures(), "tables", `${name}.lance`);

async function json(args) {
  const { status, stdout } = await command([...args, "--json"]);
  return { status, document: JSON.parse(stdout) };
}

test("a sound index has no findings, and every row was looked at", async () => {
  const handle = await open(table("segments_built_apart"));
  for (const { name, type } of expected("segments_built_apart").indices.filter(({ type }) => type !== "Inverted")) {
    const seen = [];
    const report = await handle.audit(name, { onProgress: (progress) => seen.push(progress) });
    assert.deepEqual([report.findings, report.counts, report.exact], [[], {}, true], name);
    assert.deepEqual([report.rows, report.fragments, report.segments], [100, [0, 1, 2, 3], 2], name);
    assert.deepEqual(seen.at(-1), { rows: 100, rows_total: 100 });
    assert.equal(report.method.replace("_", "").toLowerCase(), type.toLowerCase());
  }
});

test("an index that lies is named, and the command fails", async () => {
  const { status, document } = await json(["audit", table("stale_pages_delta"), "k_idx"]);
  assert.equal(status, 1);
  assert.deepEqual(Object.keys(document.counts), ["ROW_STALE"]);
  assert.ok(document.findings.every((finding) => finding.fragment === 1 && /^\d+$/.test(finding.row)));
  const text = await command(["audit", table("stale_pages_delta"), "k_idx"]);
  assert.equal(text.status, 1);
  assert.match(text.stdout, /^ROW_STALE \d+$/m);
  const sound = await command(["audit", table("stale_pages_merged"), "k_idx"]);
  assert.equal(sound.status, 0);
  assert.match(sound.stdout, /nothing found/);
});

test("a sample states its error, and a wrong one is refused", async () => {
  const { document } = await json(["audit", table("fragments_200"), "k_idx", "--sample", "20"]);
  assert.deepEqual([document.exact, document.fragments.length], [false, 20]);
  assert.ok(document.error_bound > 0.13 && document.error_bound < 0.15, String(document.error_bound));
  assert.equal((await command(["audit", table("fragments_200"), "k_idx", "--sample", "0"])).status, 2);
});

test("an audit is given up when its signal fires", async (t) => {
  const handle = await open(copyTable(t, "legacy_fri_external"));
  const abort = new AbortController();
  const running = handle.audit("b_idx", { signal: abort.signal, onProgress: () => abort.abort() });
  await assert.rejects(running, { code: "ABORTED" });
});

test("pages, zones, keys and tokens of segments, a stretch at a time", async () => {
  const source = table("fragments_200");
  const handle = await open(source);
  const [{ uuid, contents, parts }] = await handle.inspect("k_idx");
  assert.deepEqual([parts.kind, parts.count, parts.offset, parts.left_out], ["pages", contents.pages, 0, 0]);
  assert.equal(parts.items.reduce((sum, { rows }) => sum + rows, 0), contents.rows);
  assert.equal(parts.items.reduce((sum, { nulls }) => sum + nulls, 0), contents.nulls);
  assert.equal(parts.items.at(-1).max, contents.max);
  const built = await open(table("segments_built_apart"));
  for (const { name, type } of expected("segments_built_apart").indices) {
    for (const segment of await built.inspect(name, { limit: 3 })) {
      const whole = await built.parts(name, segment.uuid);
      assert.deepEqual([segment.parts.items, segment.parts.count], [whole.items.slice(0, 3), whole.items.length], `${name} ${type}`);
      assert.equal(segment.parts.left_out, whole.count - segment.parts.items.length);
      assert.deepEqual((await built.parts(name, segment.uuid, { offset: 1, limit: 1 })).items, whole.items.slice(1, 2));
      assert.deepEqual((await built.parts(name, segment.uuid, { offset: whole.count + 5 })).items, []);
    }
  }
  await assert.rejects(handle.parts("k_idx", "00000000-0000-4000-8000-000000000000"), { code: "INVALID_ARGUMENT" });
  await assert.rejects(handle.inspect("k_idx", { limit: -1 }), { code: "INVALID_ARGUMENT" });
  const { document } = await json(["segments", source, "k_idx", "--segment", uuid, "--limit", "0"]);
  assert.deepEqual(document, { kind: "pages", count: parts.count, offset: 0, left_out: parts.count, items: [] });
  const text = await command(["segments", source, "k_idx", "--segment", uuid]);
  assert.match(text.stdout, /^PAGE +ROWS +MIN +MAX +NULLS$/m);
});

test("what is inside segments", async () => {
  const { document } = await json(["segments", table("segments_built_apart"), "m_bitmap"]);
  assert.deepEqual(document.contents.map(({ contents }) => [contents.method, contents.rows, contents.problems]), [["BITMAP", 50, []], ["BITMAP", 50, []]]);
  assert.deepEqual(document.contents.map(({ uuid }) => uuid), document.indices[0].segments.map(({ uuid }) => uuid));
  const text = await command(["segments", table("segments_built_apart"), "f_bloomfilter"]);
  assert.match(text.stdout, /^ *number_of_items +8192$/m);
  const other = await json(["segments", table("other_index_kinds"), "t_fm"]);
  assert.deepEqual([other.status, other.document.contents], [0, null]);
});

test("a probe says what a condition has to look at", async () => {
  const handle = await open(table("segments_built_apart"));
  const exact = await handle.probe("m_bitmap", "is-null");
  assert.deepEqual([exact.exact, exact.unindexed, exact.row_domain, exact.value], [true, [4], "address", null]);
  assert.deepEqual([...exact.fragments, ...exact.pruned].sort(), [0, 1, 2, 3]);
  assert.equal(exact.rows, exact.first_rows.length);
  const zones = await handle.probe("z_zonemap", "<", -1_000_000);
  // Fragment 0 holds the smallest number there is.
  assert.deepEqual([zones.exact, zones.rows, zones.fragments, zones.pruned], [false, null, [0], [1, 2, 3]]);
  assert.deepEqual(zones.segments.map((segment) => segment.zones.map(({ fragment }) => fragment)), [[0], []]);
  await assert.rejects(handle.probe("f_bloomfilter", "<", 1), { code: "INVALID_ARGUMENT" });
  const text = await command(["probe", table("segments_built_apart"), "b_btree", ">=", "0"]);
  assert.equal(text.status, 0);
  assert.match(text.stdout, /^unindexed +4$/m);
  const { status, document } = await json(["probe", table("segments_built_apart"), "b_btree", "is-null"]);
  assert.deepEqual([status, document.segments.length, document.segments[0].pages], [0, 2, [0]]);
});
