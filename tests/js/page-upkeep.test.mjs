// Trim, prune and the collection of row maps on the page, in a real Chromium, on tables that Lance partitioned and compacted.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, utimesSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { open as openTable } from "../../pkg/dist/node.js";
import { axe, LOOKS, wider } from "../support/page_axe.mjs";
import { pageOn } from "../support/page_browser.mjs";
import { copyTable, copyTagged, fixtures, scratch } from "./support.mjs";

const WAIT = { timeout: 60_000 };
const plain = (text) => text.replace(/[\u202f\u00a0]/g, " ").trim();
const expected = (name) => JSON.parse(readFileSync(path.join(fixtures(), "tagged", `${name}.json`), "utf8"));
const history = (page) => page.locator(".history");

/** `orphan_row_maps` with one row map that may go and one that is too young. */
function orphans(folder) {
  const target = copyTagged("orphan_row_maps", folder);
  const { unreferenced_old_map: old, unreferenced_new_map: young } = expected("orphan_row_maps").extra;
  for (const [map, days] of [[old, 8], [young, 1]]) {
    const at = new Date(Date.now() - days * 86_400_000);
    for (const file of readdirSync(path.join(target, "_fri", map))) utimesSync(path.join(target, "_fri", map, file), at, at);
  }
  return { target, old, young };
}

test("a trim: what goes and stays and why, then as Lance's own; a second finds nothing", async (t) => {
  const folder = scratch(t);
  const target = copyTagged("partially_drained", folder);
  const { open, shot, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("partially_drained")}&view=history`);
  const plan = await (await openTable(target)).planTrim();
  const dialog = page.locator("dialog");
  await history(page).getByRole("button", { name: "Trim…" }).press("Enter", WAIT);
  const run = dialog.getByRole("button", { name: "Remove 1 record and 2 superseded segments" }).and(page.locator(":enabled"));
  await run.waitFor(WAIT);
  const text = plain(await dialog.locator(".plan-body").innerText());
  for (const { uuid, why } of plan.prune) assert.ok(text.includes(uuid.slice(0, 8)) && text.includes(why), `${text}: ${why}`);
  for (const { moves, why } of plan.records) for (const part of [...moves, ...why]) assert.ok(text.includes(part), `${text}: ${part}`);
  assert.equal(await dialog.locator(".fate-removed").count(), 3);
  await shot(page, "page-trim");
  await run.press("Enter");
  await page.waitForSelector(".report", WAIT);
  const { outcome } = expected("partially_drained").maintenance.trim;
  const before = plan.v_plan;
  assert.match(plain(await page.locator(".report-head").innerText()), new RegExp(`The history has 1 record instead of 2; 2 superseded segments removed\\. Version ${before} → ${outcome.version_after}\\.`));
  assert.match(await page.locator(".command code").innerText(), /^whetstone trim http\S+partially_drained\.lance$/);
  await shot(page, "page-trim-report");
  await dialog.getByRole("button", { name: "Done" }).click();
  assert.equal((await openTable(target)).version, outcome.version_after);
  await page.waitForFunction(() => /^1 transition ·/.test(document.querySelector(".history-summary")?.textContent ?? ""), null, WAIT);
  await history(page).getByRole("button", { name: "Trim…" }).click();
  await dialog.getByRole("button", { name: "Nothing to trim" }).waitFor(WAIT);
  assert.ok(await dialog.getByRole("button", { name: "Nothing to trim" }).isDisabled());
  await page.keyboard.press("Escape");
  await history(page).getByRole("button", { name: "Prune…" }).click();
  await dialog.getByRole("button", { name: "Nothing to prune" }).waitFor(WAIT);
  assert.deepEqual(problems, []);
});

test("a prune takes out superseded segments and no record", async (t) => {
  const folder = scratch(t);
  const target = copyTagged("superseded", folder);
  const { open, shot, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("superseded")}&view=history&prune=history`);
  const handle = await openTable(target);
  const [plan, records] = [await handle.planPrune(), (await handle.history()).transitions.length];
  const n = plan.segments.length;
  assert.ok(n > 0);
  await page.getByRole("button", { name: `Drop ${n} superseded segment${n === 1 ? "" : "s"}` }).click(WAIT);
  await page.waitForSelector(".report", WAIT);
  await shot(page, "page-prune-report");
  const after = await openTable(target);
  assert.equal(after.version, handle.version + 1);
  const left = await after.history();
  assert.equal(left.transitions.length, records);
  for (const { uuid } of plan.segments) assert.ok(!left.segments.some((one) => one.uuid === uuid));
  assert.deepEqual(problems, []);
});

test("row maps: nothing is deleted before it is ticked, only what is ticked is, and nothing young", async (t) => {
  const folder = scratch(t);
  const { target, old, young } = orphans(folder);
  const { open, shot, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("orphan_row_maps")}&view=history`);
  const dialog = page.locator("dialog");
  await history(page).getByRole("button", { name: "Collect row maps…" }).click(WAIT);
  const primary = dialog.locator(".dialog-foot .primary");
  await dialog.getByRole("button", { name: "Tick what to delete" }).waitFor(WAIT);
  assert.ok(await primary.isDisabled());
  const plan = await (await openTable(target)).planGc();
  assert.equal(await dialog.locator(".row-maps tbody tr").count(), plan.row_maps.length);
  const states = Object.fromEntries(plan.row_maps.map((map) => [map.map_id, map.state]));
  assert.deepEqual([states[old], states[young]], ["aged", "young"]);
  assert.equal(await dialog.locator(".row-maps input").count(), 1, "only what may go can be ticked");
  // Older than ten days: then the one of eight stays as well, and the tick is gone with its plan.
  await dialog.getByLabel(`Delete row map ${old}`).check();
  assert.ok(await primary.isEnabled());
  await dialog.getByLabel("Days", { exact: true }).fill("10");
  await dialog.getByLabel("Days", { exact: true }).press("Tab");
  await dialog.getByLabel("Days", { exact: true }).fill("1");
  await dialog.getByRole("button", { name: "Nothing to delete" }).waitFor(WAIT);
  assert.equal(await dialog.getByLabel("Days", { exact: true }).inputValue(), "1", "a plan that arrives takes away nothing that is being typed");
  await dialog.getByLabel("Days", { exact: true }).press("Tab");
  await dialog.getByRole("button", { name: "Tick what to delete" }).waitFor(WAIT);
  assert.equal(await dialog.getByLabel("Days", { exact: true }).inputValue(), "7", "never younger than a week");
  await dialog.getByLabel("Days", { exact: true }).fill("some");
  await dialog.getByLabel("Days", { exact: true }).press("Tab");
  // No number changes nothing.
  await page.waitForFunction(() => document.getElementById("stepper-days").value === "7", null, WAIT);
  await shot(page, "page-gc");
  assert.ok(existsSync(path.join(target, "_fri", old, "stable_partition.lance")), "a plan deletes nothing");
  await dialog.getByLabel(`Delete row map ${old}`).press("Space");
  const bytes = plan.row_maps.find((map) => map.map_id === old).bytes;
  assert.match(plain(await primary.innerText()), /^Delete 1 row map, [\d.]+ (B|KB)$/);
  assert.ok(bytes > 0);
  await primary.press("Enter");
  await page.waitForSelector(".report", WAIT);
  assert.match(plain(await page.locator(".report-head").innerText()), /^1 row map deleted, [\d.]+ (B|KB); \d+ stays?\. No version was written\.$/);
  assert.ok((await page.locator(".report").innerText()).includes(old));
  await shot(page, "page-gc-report");
  assert.ok(!existsSync(path.join(target, "_fri", old, "stable_partition.lance")));
  assert.ok(existsSync(path.join(target, "_fri", young, "stable_partition.lance")));
  assert.deepEqual(problems, []);
});

test("what this release does not understand is refused by name; a table without a history has nothing to trim", async (t) => {
  const folder = scratch(t);
  copyTagged("unknown_record", folder);
  copyTable(t, "fragments_200", folder);
  const { open, table } = await pageOn(t, folder);
  const { page } = await open(`?url=${table("unknown_record")}&view=history`);
  await page.waitForSelector(".history .note", WAIT);
  assert.equal(await history(page).getByRole("button", { name: /…$/ }).count(), 0);
  for (const [job, label] of [["trim", "Nothing planned"], ["prune", "Nothing planned"]]) {
    const { page: asked } = await open(`?url=${table("unknown_record")}&${job}=history`);
    await asked.waitForSelector(".plan .error", WAIT);
    assert.match(plain(await asked.locator(".plan .error").innerText()), /HISTORY_UNSUPPORTED/);
    assert.ok(await asked.getByRole("button", { name: label }).isDisabled());
  }
  const { page: without } = await open(`?url=${table("fragments_200")}&view=history`);
  await without.getByRole("button", { name: "Look for row maps that nothing names…" }).click(WAIT);
  await without.getByRole("button", { name: "Nothing to delete" }).waitFor(WAIT);
  assert.match(plain(await without.locator(".plan").innerText()), /This table has no row maps/);
});

test("a trim that is cancelled says how far it got: nothing, or its first commit", async (t) => {
  const folder = scratch(t);
  const target = copyTagged("partially_drained", folder);
  const { open, stand, table } = await pageOn(t, folder);
  const { version } = await openTable(target);
  let holds = () => false;
  let release;
  let gate;
  stand(() => true, async (request, response, listener) => {
    if (holds(request)) await gate;
    listener(request, response);
  });
  /** Runs the trim, and cancels it while requests that `when` names wait. */
  const cancelled = async (when) => {
    const { page } = await open(`?url=${table("partially_drained")}&trim=history`);
    const run = page.locator(".dialog-foot .primary:enabled").filter({ hasText: "Remove" });
    await run.waitFor(WAIT);
    const held = new Promise((reached) => {
      gate = new Promise((resolve) => { release = resolve; });
      holds = (request) => when(request) && (reached(), true);
    });
    await run.click();
    await held;
    await page.getByRole("button", { name: "Cancel" }).click(WAIT);
    release();
    holds = () => false;
    await page.waitForSelector(".plan > .note", WAIT);
    return plain(await page.locator(".plan > .note").innerText());
  };
  assert.equal(await cancelled(() => true), "Cancelled. Nothing was changed.");
  assert.equal((await openTable(target)).version, version);
  let pruned = false;
  const said = await cancelled((request) => {
    if (pruned && request.method !== "PUT") return true;
    pruned ||= request.method === "PUT" && request.url.includes("/_versions/");
    return false;
  });
  assert.equal(said, "Cancelled in the middle: superseded segments are gone, the history’s records are as they were.");
  const after = await openTable(target);
  assert.equal(after.version, version + 1);
  assert.deepEqual([(await after.planPrune()).segments.length, (await after.planTrim()).records.length], [0, 2]);
});

test("the dialogs of a history, wide and on a phone, light and dark: no finding, nothing wider than the screen", async (t) => {
  const folder = scratch(t);
  copyTagged("partially_drained", folder);
  orphans(folder);
  const { open, shot, table } = await pageOn(t, folder);
  for (const [at, look] of LOOKS.entries()) {
    const check = async (page, state) => {
      assert.deepEqual(await axe(page), [], `${state} ${look.name}`);
      assert.equal(await wider(page), 0, `${state} ${look.name}: nothing is wider than the screen`);
      await shot(page, `upkeep-${state}-${look.name}`);
    };
    const { page: trim } = await open(`?url=${table("partially_drained")}&view=history&trim=history`, look);
    const run = trim.locator(".dialog-foot .primary:enabled").filter({ hasText: "Remove" });
    await run.waitFor(WAIT);
    await check(trim, "trim");
    const { page: gc } = await open(`?url=${table("orphan_row_maps")}&view=history&gc=history`, look);
    await gc.locator(".row-maps input").check(WAIT);
    await check(gc, "gc");
    if (at === LOOKS.length - 1) {
      await run.click();
      await trim.waitForSelector(".report", WAIT);
      await check(trim, "trim-report");
      await gc.locator(".dialog-foot .primary").click();
      await gc.waitForSelector(".report", WAIT);
      await check(gc, "gc-report");
    }
    await trim.context().close();
    await gc.context().close();
  }
});
