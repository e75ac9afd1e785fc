// The reuse history on the page, in a real Chromium, on tables that Lance partitioned and compacted with deferred remapping.
import assert from "node:assert/strict";
import test from "node:test";
import { open as openTable } from "../../pkg/dist/node.js";
import { pageOn } from "../support/page_browser.mjs";
import { copyTable, copyTagged, scratch } from "./support.mjs";

const WAIT = { timeout: 60_000 };
const plain = (text) => text.replace(/[\u202f\u00a0]/g, " ").trim();

test("a history as a graph: what stays and why, what a trim removes, and a segment's way", async (t) => {
  const folder = scratch(t);
  const names = ["partially_drained", "mixed_partition_then_compaction", "unknown_mapping"];
  const tables = Object.fromEntries(names.map((name) => [name, copyTagged(name, folder)]));
  copyTable(t, "fragments_200", folder);
  const { open, shot, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("partially_drained")}`);
  // What rewriting a column in place would cost is said while it can be avoided.
  const costs = (await (await openTable(tables.partially_drained)).show()).warnings.find((warning) => warning.rule === "rewrite_in_place");
  await page.locator(".health-line", { hasText: costs.evidence }).waitFor(WAIT);
  await page.getByRole("button", { name: "history", exact: true }).click(WAIT);
  await page.waitForSelector(".history-graph", WAIT);
  const want = await (await openTable(tables.partially_drained)).history();
  assert.match(plain(await page.locator(".history-summary").innerText()), /^2 transitions, of which a trim removes 1 · 6 segments, of which a prune removes 2/);
  const joints = page.locator(".history-joint");
  assert.equal(await joints.count(), want.transitions.length);
  assert.equal(await page.locator(".history-joint.is-removed").count(), 1, "what a trim would remove is ghosted");
  assert.ok(await page.locator(".history-node.is-ghost").count() >= 1);
  assert.equal(await page.locator(".history-node.is-live").count(), 2);
  assert.equal(await joints.nth(0).getAttribute("aria-label"), "Transition 0, stable partition, 0–1 to 10–11, a trim removes it");

  // With keys alone: the first transition, the next one, chosen; the sentences are the engine's.
  await joints.nth(0).focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".details .history-reasons p", WAIT);
  assert.equal(new URL(page.url()).searchParams.get("sel"), "transition:1");
  assert.deepEqual((await page.locator(".details .history-reasons p").allInnerTexts()).map(plain), want.transitions[1].why);
  assert.equal(await joints.nth(1).getAttribute("aria-pressed"), "true");

  // A segment's way: the lines it takes are lit, and the table has the same.
  const following = want.segments.findIndex((segment) => segment.path.length > 0);
  await page.locator(".history-segment").nth(following).click();
  await page.waitForSelector(".history-edge.is-lit", { ...WAIT, state: "attached" });
  assert.equal(await page.locator(".history-edge.is-lit").count(), 2, "into the transition, and out of it");
  const rows = page.locator('[aria-label="Segments of the history"] tbody tr');
  assert.equal(await rows.count(), want.segments.length);
  const text = plain(await rows.nth(following).innerText());
  for (const part of [want.segments[following].state, want.segments[following].reason, want.segments[following].why]) assert.ok(text.includes(part), `${text}: ${part}`);
  await shot(page, "page-history");

  await page.goto(page.url().split("?")[0] + `?url=${table("mixed_partition_then_compaction")}&view=history`);
  await page.waitForSelector(".history-graph", WAIT);
  const x = await joints.evaluateAll((all) => all.map((one) => one.getBoundingClientRect().x));
  assert.ok(x[0] < x[1], "the compaction follows the partition");
  assert.equal(await page.locator(".history-key").count(), 4);
  await shot(page, "page-history-chain");

  await page.goto(page.url().split("?")[0] + `?url=${table("unknown_mapping")}&view=history`);
  await page.waitForSelector(".history .note", WAIT);
  assert.match(plain(await page.locator(".history .note").first().innerText()), /something this release does not know/);
  await page.goto(page.url().split("?")[0] + `?url=${table("fragments_200")}&view=history`);
  await page.waitForFunction(() => /no fragment reuse history/.test(document.querySelector(".layout")?.textContent ?? ""), null, WAIT);
  assert.deepEqual(problems, []);
});
