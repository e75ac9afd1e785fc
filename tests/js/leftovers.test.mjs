// What jobs leave behind: discard removes what one job staged, orphans what nobody names. Neither touches what may be in use.
import assert from "node:assert/strict";
import { existsSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { buildSegment, open } from "whetstone";
import { command, copyTable, scratch } from "./support.mjs";

const NAME = "fragments_one_wide";
const DAY = 86_400_000;

/** A table and a segment that was built for its index and never committed. */
async function staged(t) {
  const folder = copyTable(t, NAME);
  const table = await open(folder);
  const plan = await table.planRefresh("k_idx");
  const built = [await buildSegment(plan.tasks[0], table.store)];
  const files = () => built[0].staged.filter((file) => existsSync(path.join(folder, file)));
  assert.ok(files().length > 0);
  return { folder, table, plan, built, files, all: files() };
}

/** Everything below the table looks `days` old. */
function aged(folder, days) {
  const then = (Date.now() - days * DAY) / 1000;
  for (const name of readdirSync(folder, { recursive: true })) utimesSync(path.join(folder, name), then, then);
}

/** The error of a commit of which nobody knows what became. */
function unknown({ table, built }, transaction = "5a0ec4a3-51ea-4a88-8b51-2a3e2b9f6f10") {
  const detail = { staged: built[0].staged, transaction, version: table.version + 1 };
  return { code: "COMMIT_UNKNOWN", message: "…", changed: "unknown", detail };
}

test("what was built and not committed is discarded, once that is planned and run", async (t) => {
  const { table, built, files, all } = await staged(t);
  const plan = await table.planDiscard(built);
  assert.deepEqual([plan.kind, plan.transaction, plan.segments.map((s) => s.uuid)], ["discard", null, [built[0].uuid]]);
  assert.deepEqual(files(), all, "a plan removes nothing");
  const report = await table.run(structuredClone(JSON.parse(JSON.stringify(plan))));
  assert.deepEqual([report.removed.sort(), report.left, files()], [[...all].sort(), [], []]);
  assert.deepEqual((await table.discard(built)).removed, [], "again it is nothing to do");
});

test("what was committed is never discarded", async (t) => {
  const { table, plan, built, files, all } = await staged(t);
  const planned = await table.planDiscard(built);
  const report = await table.commitSegments(plan, built);
  await assert.rejects(table.discard(built), (error) => error.code === "INVALID_ARGUMENT" && error.message.includes("was committed"));
  await assert.rejects(table.discard(report), { code: "INVALID_ARGUMENT" });
  const removal = await table.run(planned);
  assert.deepEqual([removal.removed, removal.left.map((l) => l.why)], [[], ["a version names it"]], "a plan that came too late looks again");
  assert.deepEqual(files(), all);
});

test("while a commit may still arrive nothing is discarded", async (t) => {
  const job = await staged(t);
  await assert.rejects(job.table.discard(unknown(job)), (error) => error.code === "COMMIT_UNKNOWN" && error.message.includes("may still arrive"));
  assert.deepEqual(job.files(), job.all);
  // Somebody else has the version now: whatever was on its way is refused by the store.
  await job.table.createIndex("other", "k", "ZONEMAP", { train: false });
  assert.deepEqual((await job.table.discard(unknown({ ...job, table: { version: job.table.version - 1 } }))).removed.sort(), [...job.all].sort());
  await assert.rejects(job.table.discard({ code: "ABORTED", detail: {} }), { code: "INVALID_ARGUMENT" });
});

test("the command discards what an error lists, shows it before, and refuses what is uncertain", async (t) => {
  const job = await staged(t);
  const file = path.join(scratch(t), "error.json");
  const certain = { error: { code: "ABORTED", message: "…", detail: { staged: job.built[0].staged } } };
  writeFileSync(file, JSON.stringify({ error: unknown(job) }));
  const refused = await command(["discard", job.folder, file, "--json"]);
  assert.equal(refused.status, 3, refused.stdout + refused.stderr);
  assert.equal(JSON.parse(refused.stdout).error.code, "COMMIT_UNKNOWN");
  writeFileSync(file, JSON.stringify(certain));
  const shown = await command(["discard", job.folder, file, "--dry-run"]);
  assert.equal(shown.status, 0, shown.stderr);
  assert.ok(shown.stdout.includes(job.built[0].uuid), shown.stdout);
  assert.deepEqual(job.files(), job.all);
  const done = await command(["discard", job.folder, "-", "--json"], { input: JSON.stringify(certain) });
  assert.deepEqual([done.status, JSON.parse(done.stdout).removed.sort(), job.files()], [0, [...job.all].sort(), []], done.stderr);
});

test("orphans are listed with their age; only old ones may be removed", async (t) => {
  const { folder, table, built, files, all } = await staged(t);
  const own = (list) => list.orphans.filter((orphan) => orphan.path === `_indices/${built[0].uuid}`);
  const young = await table.orphans();
  assert.deepEqual(own(young).map((o) => [o.what, o.files, o.removable]), [["segment", all.length, false]]);
  assert.deepEqual((await table.run(young)).removed.filter((file) => all.includes(file)), []);
  await assert.rejects(table.orphans({ olderThan: DAY / 2 }), { code: "INVALID_ARGUMENT" });
  aged(folder, 3);
  assert.deepEqual(own(await table.orphans()).map((o) => o.removable), [false], "three days are less than seven");
  const old = await table.orphans({ olderThan: 2 * DAY });
  assert.ok(own(old)[0].removable && own(old)[0].age_ms >= 3 * DAY - 60_000 && old.removable_bytes >= own(old)[0].bytes);
  assert.deepEqual(files(), all, "a list removes nothing");
  const shown = await command(["orphans", folder]);
  assert.equal(shown.status, 0, shown.stderr);
  assert.ok(shown.stdout.includes(built[0].uuid), shown.stdout);
  assert.equal((await command(["orphans", folder, "--remove", "--json"])).status, 0);
  assert.deepEqual(files(), all, "the command keeps to seven days, too");
  const hasty = await command(["orphans", folder, "--remove", "--older-than", "3h", "--json"]);
  assert.equal(JSON.parse(hasty.stdout).error.code, "INVALID_ARGUMENT");
  const removed = JSON.parse((await command(["orphans", folder, "--remove", "--older-than", "2d", "--json"])).stdout).removed;
  assert.deepEqual([all.filter((file) => !removed.includes(file)), files()], [[], []]);
  assert.deepEqual((await table.segments("k_idx")).length > 0 && (await table.orphans()).orphans.filter((o) => o.what === "segment"), []);
});

test("an orphan that somebody committed meanwhile stays", async (t) => {
  const { folder, table, plan, built, files, all } = await staged(t);
  aged(folder, 30);
  const list = await table.orphans();
  await table.commitSegments(plan, built);
  const removal = await table.run(list);
  assert.deepEqual(files(), all);
  assert.deepEqual(removal.removed.filter((file) => all.includes(file)), []);
});
