// Reuse histories through the package and the command: the document, and the jobs that shorten and collect them.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import test from "node:test";
import { open } from "whetstone";
import { command, fixtures } from "./support.mjs";

const table = (name) => path.join(fixtures(), "tagged", `${name}.lance`);
const expected = (name) => JSON.parse(fs.readFileSync(path.join(fixtures(), "tagged", `${name}.json`), "utf8"));

function copy(name, t) {
  const folder = fs.mkdtempSync(path.join(fs.realpathSync(process.env.TMPDIR ?? "/tmp"), "whetstone-history-"));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  fs.cpSync(table(name), path.join(folder, `${name}.lance`), { recursive: true });
  return path.join(folder, `${name}.lance`);
}

async function json(args) {
  const { status, stdout } = await command([...args, "--json"]);
  return { status, document: JSON.parse(stdout) };
}

test("a history says what it covers and why it stays, as data and as text", async () => {
  const { document } = await json(["history", table("partition_1hop")]);
  assert.deepEqual([document.index_version, document.supported, document.transitions.length], [1, true, 1]);
  const [one] = document.transitions;
  assert.deepEqual([one.kind, one.kept, one.sources.map((d) => d.id), one.destinations.map((d) => d.id)], ["stable_partition", true, [0, 1], [10, 11]]);
  assert.ok(one.why.some((why) => /of i_idx still translates 0, 1 → 10, 11/.test(why)), one.why.join("\n"));
  assert.ok(document.segments.every((s) => s.state === "translated" && s.listed && s.derived.join() === "10,11"));
  const text = await command(["history", table("partition_1hop")]);
  assert.match(text.stdout, /0 stays:/);
  const handle = await open(table("partition_1hop"));
  assert.deepEqual(await handle.history(), document);
});

test("trim ends as Lance's own, and the second finds nothing", async (t) => {
  for (const name of ["superseded", "partially_drained", "fully_drained"]) {
    const theirs = expected(name).maintenance.trim;
    const target = copy(name, t);
    const planned = await json(["trim", target, "--dry-run"]);
    assert.deepEqual([planned.status, planned.document.kind], [0, "trim"]);
    const handle = await open(target);
    const plan = await handle.planTrim();
    assert.deepEqual(plan, planned.document);
    const report = await handle.run(JSON.parse(JSON.stringify(plan)));
    assert.equal(report.version, theirs.outcome.version_after, name);
    assert.equal(handle.version, theirs.outcome.version_after);
    const again = await json(["trim", target]);
    assert.deepEqual(again.document.transactions, [], name);
    assert.deepEqual((await json(["prune", target])).document.segments_removed, [], name);
  }
  const refused = await command(["trim", copy("unknown_record", t), "--json"]);
  assert.equal(refused.status, 1);
  assert.equal(JSON.parse(refused.stdout).error.code, "HISTORY_UNSUPPORTED");
});

test("a collection shows what it would remove, and removes it when told", async (t) => {
  const target = copy("orphan_row_maps", t);
  const { unreferenced_old_map: old, unreferenced_new_map: young } = expected("orphan_row_maps").extra;
  const days = (n) => new Date(Date.now() - n * 86_400_000);
  for (const [map, age] of [[old, 8], [young, 1]]) {
    for (const file of fs.readdirSync(path.join(target, "_fri", map))) fs.utimesSync(path.join(target, "_fri", map, file), days(age), days(age));
  }
  const { document } = await json(["gc", target]);
  const states = Object.fromEntries(document.row_maps.map((m) => [m.map_id, m.state]));
  assert.deepEqual([states[old], states[young], document.disabled], ["aged", "young", null]);
  assert.ok(fs.existsSync(path.join(target, "_fri", old, "stable_partition.lance")), "a plan removes nothing");
  const handle = await open(target);
  assert.equal((await handle.gc()).kind, "gc");
  assert.equal((await command(["gc", target, "--older-than", "1d"])).status, 1);
  const removed = await json(["gc", target, "--remove"]);
  assert.deepEqual(removed.document.removed, [old]);
  assert.ok(!fs.existsSync(path.join(target, "_fri", old, "stable_partition.lance")));
  assert.ok(fs.existsSync(path.join(target, "_fri", young, "stable_partition.lance")));
});
