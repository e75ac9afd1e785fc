// What if, the question of two fragments, and statements: on the page, in a real Chromium, on tables written by Lance.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { pageOn } from "../support/page_browser.mjs";
import { copyTable, scratch } from "./support.mjs";

const WAIT = { timeout: 60_000 };
const plain = (text) => text.replace(/[\u202f\u00a0]/g, " ").trim();
const manifests = (folder, name) => readdirSync(path.join(folder, `${name}.lance`, "_versions")).filter((file) => file.endsWith(".manifest")).length;

test("what if: plans side by side, before and after on one axis, sliders; nothing is written", async (t) => {
  const folder = scratch(t);
  copyTable(t, "segments_interleaved", folder);
  const { open, shot, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("segments_interleaved")}`);
  await page.getByRole("button", { name: "what if", exact: true }).click(WAIT);
  await page.waitForSelector(".whatif-plans tbody tr:nth-child(3)", WAIT);
  assert.equal(new URL(page.url()).searchParams.get("view"), "what-if");
  const now = (await page.locator(".whatif-plans .is-now td").allInnerTexts()).map(plain);
  assert.equal(now[0], "5", "the table has five fragments");
  assert.equal(await page.locator(".strips canvas").count(), 2);
  const plans = page.locator(".whatif-plans tbody tr:not(.is-now)");
  assert.ok(await plans.count() >= 6, "several plans are compared");
  await plans.nth(3).getByRole("button").click();
  await page.waitForSelector(".whatif-plans tbody tr:nth-child(5).is-chosen", WAIT);
  const slider = page.getByRole("slider", { name: /Rows a compaction aims at/ });
  await slider.focus();
  await page.keyboard.press("Home");
  await page.waitForFunction(() => /aims at.*\b100$/s.test(document.querySelector(".whatif-slider span").textContent.trim()), null, WAIT);
  await page.waitForFunction(() => !document.querySelector(".whatif.is-stale"), null, WAIT);
  await shot(page, "page-what-if");
  assert.equal(manifests(folder, "segments_interleaved"), manifests(path.dirname(copyTable(t, "segments_interleaved", scratch(t))), "segments_interleaved"), "nothing was written");
  assert.deepEqual(problems, []);
});

test("two fragments: the rule that keeps them apart, in a sentence of the planner's", async (t) => {
  const folder = scratch(t);
  copyTable(t, "segments_interleaved", folder);
  const { open, table } = await pageOn(t, folder);
  const { page } = await open(`?url=${table("segments_interleaved")}&sel=pair:0,1`);
  await page.waitForSelector(".pair-why", WAIT);
  assert.match(plain(await page.locator(".details").innerText()), /Why won’t fragments 0 and 1 be merged\?/);
  assert.ok(plain(await page.locator(".pair-why").innerText()).length > 20);
  const box = await page.locator(".map-canvas canvas").boundingBox();
  await page.mouse.move(box.x + box.width / 5, box.y + 20);
  await page.waitForSelector(".hover-card", WAIT);
  assert.match(plain(await page.locator(".hover-card").innerText()), /between 0 and 1\s+other segments cover them in k_idx, v_idx:\s+no compaction merges them/);
  await page.mouse.move(box.x + box.width / 10, box.y + 20);
  await page.waitForFunction(() => /^fragment 0/.test(document.querySelector(".hover-card")?.textContent ?? ""), null, WAIT);
});

test("statements: answers, a caret under a mistake, a plan before anything is changed", async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder);
  const { open, shot, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("fragments_200")}&view=sql`);
  const statement = page.getByLabel("Statement");
  const run = async (text) => {
    await statement.fill(text);
    await statement.press("Enter");
  };
  await statement.waitFor(WAIT);
  await run("show indexes from fragments_200");
  await page.waitForSelector(".console tbody tr", WAIT);
  assert.match(plain(await page.locator(".console tbody").innerText()), /k_idx/);
  await run("ALTER TABEL fragments_200 REFRESH INDEX k_idx");
  await page.waitForSelector(".console-error pre", WAIT);
  assert.match(await page.locator(".console-error pre").innerText(), /\^/);
  await statement.press("ArrowUp");
  await run("ALTER TABLE fragments_200 REFRESH INDEX k_idx WITH (num_segments = 2)");
  const index = page.getByRole("button", { name: "Index 100 fragments in 2 segments" });
  await index.waitFor(WAIT);
  assert.equal(manifests(folder, "fragments_200"), 4, "planning writes nothing");
  await shot(page, "page-sql");
  await index.click();
  await page.waitForFunction(() => /Done: version/.test(document.querySelector(".console").textContent), null, WAIT);
  assert.equal(manifests(folder, "fragments_200"), 5);
  assert.equal(plain(await page.locator(".version-number").innerText()), "v 5");
  assert.deepEqual(problems, []);
});
