// Forecasts, plans of compactions and pairs of fragments through the package and the command.
import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { open } from "whetstone";
import { command, copyTable, expected, fixtures } from "./support.mjs";

const table = (name) => open(path.join(fixtures(), "tables", `${name}.lance`));

test("interleaved coverage is frozen, and the forecast says why and what to do", async () => {
  const interleaved = await table("segments_interleaved");
  const forecast = await interleaved.forecast();
  assert.equal(forecast.kind, "forecast");
  assert.deepEqual(forecast.plans.map((plan) => plan.name), [
    "compact", "contiguous", "gap_aware", "interleaved", "one_per_append", "refresh_then_compact", "compact_then_refresh", "absorb", "merge",
  ]);
  const { before } = forecast;
  assert.ok(before.frozen > 1);
  assert.equal(before.grouped + before.frozen + before.alone + before.large, before.fragments);
  const after = (name) => forecast.plans.find((plan) => plan.name === name).after;
  assert.ok(after("merge").fragments < after("compact").fragments, "merging unfreezes");
  const [frozen] = forecast.advice.filter((advice) => advice.rule === "frozen");
  assert.match(frozen.evidence, /small and stay small/);
  assert.match(frozen.action.command, /^whetstone merge /);
});

test("a plan names every fragment and every segment, and each pair of neighbours has its rule", async () => {
  const interleaved = await table("segments_interleaved");
  const said = expected("segments_interleaved");
  const plan = await interleaved.planCompaction();
  const named = [...plan.tasks.flatMap((task) => task.fragments), ...plan.skipped.map((one) => one.fragment)].sort((a, b) => a - b);
  assert.deepEqual(named, said.fragments.map((fragment) => fragment.id));
  assert.equal(plan.effects.length, said.indices.reduce((sum, index) => sum + index.segments.length, 0));
  assert.deepEqual(plan.options.from.target_rows_per_fragment, "default");
  const [a, b] = named;
  const pair = await interleaved.explainPair(b, a);
  assert.deepEqual([pair.a, pair.b, pair.joined, pair.rule], [a, b, false, "segments"]);
  assert.ok(pair.only_a.length >= 1);
  assert.match(pair.why, /different segments cover/);
  await assert.rejects(interleaved.explainPair(0, 99), { code: "INVALID_ARGUMENT", message: /never there/ });
  await assert.rejects(interleaved.explainPair(0, 0), { code: "INVALID_ARGUMENT" });
});

test("plans of the caller's own, and columns as typed arrays", async () => {
  const small = await table("fragments_one_wide");
  const forecast = await small.forecast({
    columns: true, compaction: { target_rows_per_fragment: 1_000_000 },
    plans: ["absorb", { name: "a year", steps: [{ step: "append", fragments: 12, rows: 10 }, { step: "refresh", segments: 3 }, { step: "compact", options: { defer_index_remap: true } }] }],
  });
  const [absorb, year] = forecast.plans;
  assert.deepEqual(year.steps.map((step) => step.step), ["append", "refresh", "compact"]);
  assert.equal(year.steps[0].took.fragments_written, 12);
  for (const { columns, fragments } of [forecast.before, absorb.after, year.after]) {
    assert.ok(columns.ids instanceof Uint32Array && columns.group instanceof Int32Array && columns.frozen instanceof Uint8Array);
    assert.equal(columns.ids.length, fragments);
    for (const { segment, uuids } of columns.coverage) {
      assert.equal(segment.length, fragments);
      assert.ok(segment.every((at) => at >= -1 && at < uuids.length));
    }
  }
  assert.equal(JSON.parse(JSON.stringify(forecast)).plans.length, 2);
});

test("requests that mean nothing are refused by name", async () => {
  const small = await table("fragments_one_wide");
  await assert.rejects(small.forecast({ plans: ["sideways"] }), { code: "INVALID_ARGUMENT", message: /sideways.*compact_then_refresh/ });
  await assert.rejects(small.forecast({ plans: [{ name: "x", steps: [{ step: "refresh", index: "none" }] }] }), { code: "INDEX_NOT_FOUND" });
  await assert.rejects(small.forecast({ plans: [{ name: "x", steps: [{ step: "leap" }] }] }), { code: "INVALID_ARGUMENT" });
  await assert.rejects(small.forecast({ segments: 0 }), { code: "INVALID_ARGUMENT" });
  await assert.rejects(small.planCompaction({ target_rows: 5 }), { code: "INVALID_ARGUMENT", message: /target_rows/ });
  await assert.rejects(small.planCompaction({ max_source_rows: 0 }), { code: "INVALID_ARGUMENT" });
});

test("the command prints plan and forecast as one document, or as text", async (t) => {
  const target = copyTable(t, "segments_interleaved");
  const json = await command(["compaction", target, "--json", "--pair", "0,1", "--compare", "compact", "--compare", "merge", "--param", "target_rows_per_fragment=1000"]);
  assert.equal(json.status, 0, json.stderr);
  const document = JSON.parse(json.stdout);
  assert.deepEqual(document.forecast.plans.map((plan) => plan.name), ["compact", "merge"]);
  assert.equal(document.plan.options.target_rows_per_fragment, 1000);
  assert.equal(document.pair.rule, "segments");
  const text = await command(["compaction", target]);
  assert.match(text.stdout, /one_per_append/);
  assert.match(text.stdout, /frozen/);
  assert.equal((await command(["compaction", target, "--pair", "zero"])).status, 2);
});
