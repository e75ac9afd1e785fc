// The page as it is shipped, in a real Chromium, against tables written by Lance and served by `whetstone serve`.
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { pageOn } from "../support/page_browser.mjs";
import { copyTable, expected, ROOT, scratch } from "./support.mjs";

const WAIT = { timeout: 60_000 };
const plain = (text) => text.replace(/[\u202f\u00a0]/g, " ").trim();
const meter = async (page, name) => plain(await page.locator(`[data-meter="${name}"] dd`).innerText());

/** Pixels of the map's canvas that have a given colour: what was painted, not what was meant. */
function painted(page, colour) {
  return page.evaluate((hex) => {
    const canvas = document.querySelector(".map-canvas canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    let found = 0;
    for (let i = 0; i < data.length; i += 4) if (Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 12) found += 1;
    return found;
  }, colour);
}

const manifests = (folder, name) => readdirSync(path.join(folder, `${name}.lance`, "_versions")).filter((file) => file.endsWith(".manifest"));

const hatch = (page) => page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--map-hatch").trim());

test("a table opens: meters, health, indexes with the columns of SHOW INDEXES, the map", async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder);
  const want = expected("fragments_200");
  const { open, shot, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("fragments_200")}`);
  await page.waitForSelector(".map canvas", WAIT);
  assert.equal(await meter(page, "rows"), "1 011");
  assert.equal(await meter(page, "fragments"), String(want.fragments.length));
  assert.equal(await meter(page, "indexes"), String(want.indices.length));
  assert.match(await meter(page, "read"), /KB\s*\d+ requests$/);
  const { num_indexed_rows: indexed, num_unindexed_rows: missing } = want.indices[0].statistics;
  const share = (Math.floor((indexed * 10_000) / (indexed + missing)) / 100).toFixed(2);
  const first = page.locator(".index-item").first();
  assert.equal(plain(await first.locator(".index-percent").innerText()), `${share} %`);
  assert.match(plain(await first.locator(".index-facts").innerText()), /BTree on k\s*2 segments, 7\.55 KB/);
  assert.match(plain(await page.locator(".health").innerText()), new RegExp(`k_idx covers ${share.replace(".", "\\.")} % of the rows: 100 fragments are scanned`));
  await first.locator("button.index-row").click();
  assert.equal(await page.locator(".segments tbody tr").count(), 3);
  for (const segment of want.indices[0].segments) assert.equal(await page.locator(`.segments [title="${segment.uuid}"]`).count(), 1);
  assert.ok(await painted(page, await hatch(page)) > 500, "what is not indexed is hatched");
  assert.equal(new URL(page.url()).searchParams.get("sel"), "index:k_idx");
  await shot(page, "page-table");
  assert.deepEqual(problems, []);
});

test("the start screen offers the samples beside the page", async (t) => {
  const folder = scratch(t);
  mkdirSync(path.join(folder, "samples"));
  copyTable(t, "segments_interleaved", path.join(folder, "samples"), "interleaved");
  writeFileSync(path.join(folder, "samples", "index.json"), JSON.stringify([{ name: "interleaved", title: "Taking turns", description: "<b>not bold</b>" }]));
  const { open, shot } = await pageOn(t, folder);
  const { page, problems } = await open();
  await page.waitForSelector("button.sample", WAIT);
  assert.equal(await page.locator(".sample b b").count(), 0, "texts of the sample list stay texts");
  await shot(page, "page-start");
  await page.click("button.sample");
  await page.waitForSelector(".map canvas", WAIT);
  assert.equal(await meter(page, "fragments"), "5");
  await page.goBack();
  await page.waitForSelector("button.sample", WAIT);
  assert.deepEqual(problems, []);
});

test("a refresh with two segments: plan, workers, report, the new version on screen", async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder);
  const { open, shot, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("fragments_200")}`);
  let workers = 0;
  page.on("worker", () => { workers += 1; });
  await page.locator(".health-line", { hasText: "k_idx" }).getByRole("button", { name: "Refresh…" }).click(WAIT);
  await page.waitForSelector(".runs tbody tr", WAIT);
  await page.getByRole("button", { name: "More segments" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".runs tbody tr").length === 2 && !document.querySelector(".plan-body.is-stale"), null, WAIT);
  assert.deepEqual(await page.locator(".fate").allInnerTexts(), ["KEPT", "KEPT"]);
  await shot(page, "page-dialog");
  await page.getByRole("button", { name: "Index 100 fragments in 2 segments" }).click();
  await page.waitForSelector(".report", WAIT);
  await shot(page, "page-report");
  const sets = Object.fromEntries(await page.locator(".sets > div").evaluateAll((all) => all.map((one) => [one.querySelector("dt").textContent, Number(one.querySelector("b").textContent)])));
  assert.deepEqual(sets, { live: 200, covered: 100, unindexed: 100, declared: 100, established: 100 });
  assert.match(plain(await page.locator(".report-head").innerText()), /100 fragments indexed in 2 new segments\. Version 4 → 5\./);
  assert.match(await page.locator(".command code").innerText(), /^whetstone refresh http\S+fragments_200\.lance k_idx --num-segments 2$/);
  await page.getByRole("button", { name: "Done" }).click();
  assert.equal(plain(await page.locator(".version-number").innerText()), "v 5");
  const first = page.locator(".index-item").first();
  assert.equal(plain(await first.locator(".index-percent").innerText()), "100 %");
  assert.match(plain(await first.locator(".index-facts").innerText()), /4 segments/);
  assert.equal(manifests(folder, "fragments_200").length, 5, "one new version was written");
  // Again: nothing to do, and nothing is written.
  await first.locator("button.index-row").click();
  await page.locator(".segments").getByRole("button", { name: "Refresh…" }).click();
  await page.waitForSelector(".plan-empty", WAIT);
  assert.ok(await page.getByRole("button", { name: "Nothing to index" }).isDisabled());
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
  assert.ok(workers >= 3, `the engine and two builders were workers, seen: ${workers}`);
  assert.deepEqual(problems, []);
});

test("cancel answers at once and leaves the table as it was", async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder);
  const { open, delay, table } = await pageOn(t, folder);
  const before = readdirSync(path.join(folder, "fragments_200.lance", "_indices")).length;
  delay(/\/data\//, 1500); // so that there is something to cancel
  const { page } = await open(`?url=${table("fragments_200")}&refresh=k_idx&n=8`);
  await page.getByRole("button", { name: "Index 100 fragments in 8 segments" }).click(WAIT);
  await page.getByRole("button", { name: "Cancel" }).click(WAIT);
  const ms = await page.evaluate(async () => {
    const start = performance.now();
    while (!/Cancelled/.test(document.querySelector("dialog").textContent)) await new Promise((resolve) => setTimeout(resolve, 5));
    return performance.now() - start;
  });
  assert.ok(ms < 200, `${ms} ms`);
  await page.waitForSelector(".plan .note", WAIT);
  assert.match(await page.locator(".plan .note").innerText(), /Cancelled/);
  assert.equal(manifests(folder, "fragments_200").length, 4, "no version was written");
  assert.equal(readdirSync(path.join(folder, "fragments_200.lance", "_indices")).length, before, "what was uploaded was removed");
});

test("a tab that ends between the commit and its answer: the next one says what became of it", async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder);
  const { open, shot, stand, table } = await pageOn(t, folder);
  let arrived;
  let lands = false;
  stand((request) => request.method === "PUT" && request.url.includes("/_versions/"), (request, response, listener) => {
    if (lands) {
      response.end = () => response; // the manifest is written, its answer never sent
      listener(request, response);
    }
    setTimeout(arrived, 500);
  });
  const { page } = await open();
  const begin = async (job, button, choose = () => undefined) => {
    const held = new Promise((resolve) => { arrived = resolve; });
    const tab = await page.context().newPage();
    await tab.goto(`${page.url()}?url=${table("fragments_200")}&${job}`);
    await choose(tab.locator("dialog"));
    await tab.getByRole("button", { name: button }).click(WAIT);
    await held;
    await tab.close();
  };
  const look = async (fate) => {
    const tab = await page.context().newPage();
    await tab.goto(`${page.url()}?url=${table("fragments_200")}`);
    const note = tab.locator(`.unfinished [data-fate="${fate}"]`);
    await note.waitFor(WAIT);
    return { tab, note, text: plain(await note.innerText()) };
  };
  await begin("refresh=k_idx", "Index 100 fragments in 1 segment");
  assert.equal(manifests(folder, "fragments_200").length, 4);
  const pending = await look("pending");
  assert.match(pending.text, /refresh of k_idx was being committed when its tab was closed\. It has not landed so far/);
  assert.match(pending.text, /[0-9a-f]{8}-[0-9a-f]{4}/);
  await begin("merge=k_idx", "Merge 2 segments into 1");
  await begin("create=index", "Create: index 200 fragments in 1 segment", (dialog) => dialog.getByLabel("Column").selectOption("v", WAIT));
  lands = true;
  await begin("drop=k_idx", "Drop k_idx");
  assert.equal(manifests(folder, "fragments_200").length, 5);
  // Of the four commits kept, the last became version 5, and so the others never will.
  const landed = await look("landed");
  assert.match(landed.text, /^The drop of k_idx was being committed when its tab was closed\. It landed: version 5 is its work\./);
  const lost = landed.tab.locator('.unfinished [data-fate="lost"]');
  const said = (await lost.allInnerTexts()).map(plain);
  assert.deepEqual(said.map((text) => text.split(" was being committed")[0]), ["A refresh of k_idx", "A merge of k_idx", "The creation of v_idx_2"]);
  for (const text of said) assert.match(text, /It did not land: no version carries it/);
  await shot(landed.tab, "page-unfinished");
  const kept = await landed.tab.evaluate(() => JSON.stringify({ ...localStorage }));
  assert.doesNotMatch(kept, /secret|password|key_id/i);
  await landed.note.getByRole("button", { name: "Dismiss" }).click();
  for (const _ of said) await lost.first().getByRole("button", { name: "Dismiss" }).click();
  await landed.tab.waitForFunction(() => document.querySelector(".unfinished") === null, null, WAIT);
  assert.equal(await landed.tab.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith("whetstone.commit.")).length), 0);
  await pending.tab.reload();
  await pending.tab.waitForSelector(".map canvas", WAIT);
  assert.equal(await pending.tab.locator(".unfinished").count(), 0);
});

test("versions step with the arrow keys; an old version cannot be changed", async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder);
  const { open, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("fragments_200")}`);
  await page.waitForSelector(".map canvas", WAIT);
  await page.getByRole("slider", { name: "Version" }).focus();
  await page.keyboard.press("ArrowLeft");
  await page.waitForSelector(".old-note", WAIT);
  await page.waitForFunction(() => /v.3/.test(document.querySelector(".version-number").textContent), null, WAIT);
  assert.equal(new URL(page.url()).searchParams.get("v"), "3");
  const buttons = await page.getByRole("button", { name: /^(Refresh|Merge|Drop|Compact|Create an index|Find leftovers)…$/ }).all();
  assert.ok(buttons.length > 3);
  for (const button of buttons) assert.ok(await button.isDisabled(), await button.innerText());
  await page.keyboard.press("Home");
  await page.waitForFunction(() => /v.1/.test(document.querySelector(".version-number").textContent), null, WAIT);
  assert.equal(await meter(page, "indexes"), "0");
  await page.getByRole("button", { name: "latest", exact: true }).click();
  await page.waitForFunction(() => /v.4/.test(document.querySelector(".version-number").textContent), null, WAIT);
  assert.deepEqual(problems, []);
});

test("the map by keyboard and pointer: zoom, fit, walk, select, the question of two fragments; the address holds it all", async (t) => {
  const folder = scratch(t);
  copyTable(t, "segments_interleaved", folder);
  const { open, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("segments_interleaved")}`);
  await page.waitForSelector(".map canvas", WAIT);
  const canvas = page.locator(".map-canvas canvas");
  await canvas.focus();
  await page.keyboard.press("ArrowUp");
  await page.waitForFunction(() => new URLSearchParams(location.search).has("z"), null, WAIT);
  await page.keyboard.press("0");
  await page.waitForFunction(() => !new URLSearchParams(location.search).has("z"), null, WAIT);
  await page.keyboard.press("n");
  await page.keyboard.press("n");
  await page.waitForFunction(() => new URLSearchParams(location.search).get("sel") === "fragment:1", null, WAIT);
  assert.match(plain(await page.locator(".details").innerText()), /Fragment\s*1/);
  const box = await canvas.boundingBox();
  const fragment = (i) => [box.x + (box.width / 5) * (i + 0.5), box.y + 30];
  await page.mouse.click(...fragment(0));
  await page.keyboard.down("Shift");
  await page.mouse.click(...fragment(2));
  await page.keyboard.up("Shift");
  await page.waitForFunction(() => new URLSearchParams(location.search).get("sel") === "pair:0,2", null, WAIT);
  assert.match(plain(await page.locator(".details").innerText()), /Why won’t fragments 0 and 2 be merged\?/);
  await page.mouse.wheel(0, -400);
  await page.waitForFunction(() => new URLSearchParams(location.search).has("z"), null, WAIT);
  await page.reload();
  await page.waitForSelector(".map canvas", WAIT);
  assert.match(plain(await page.locator(".details").innerText()), /fragments 0 and 2/);
  await page.keyboard.press("/");
  await page.keyboard.type("v_idx");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => new URLSearchParams(location.search).get("sel") === "index:v_idx", null, WAIT);
  await page.getByRole("button", { name: "table", exact: true }).click();
  assert.equal(await page.locator(".fragment-table tbody tr").count(), 5);
  assert.deepEqual(problems, []);
});

test("names from a table stay text, on a phone in the dark as well", async (t) => {
  const folder = scratch(t);
  copyTable(t, "odd_index_names", folder);
  const { open, shot, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("odd_index_names")}`, { width: 390, height: 844, dark: true });
  await page.waitForSelector(".map canvas", WAIT);
  const want = expected("odd_index_names").indices.map((index) => index.name);
  const shown = await page.locator(".index-name").evaluateAll((all) => all.map((one) => one.title));
  assert.deepEqual([...shown].sort(), [...want].sort());
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0, "nothing is wider than the phone");
  await shot(page, "page-phone");
  assert.deepEqual(problems, []);
});

test("what cannot be opened says what happened and what to do", async (t) => {
  const folder = scratch(t);
  mkdirSync(path.join(folder, "nothing.lance"));
  const { open, shot, table } = await pageOn(t, folder);
  const { page } = await open(`?url=${table("nothing")}`);
  await page.waitForSelector(".error", WAIT);
  const text = plain(await page.locator(".error").innerText());
  assert.match(text, /TABLE_NOT_FOUND/);
  assert.match(text, /Nothing was changed/);
  assert.doesNotMatch(text, /\bat \S+:\d+:\d+/, "no stack");
  await shot(page, "page-error");
  const empty = await open(`?url=${table("absent")}&v=7`);
  await empty.page.waitForSelector(".error", WAIT);
  const closed = await open("?url=http://127.0.0.1:1/t.lance");
  await closed.page.waitForSelector(".error", WAIT);
  assert.match(plain(await closed.page.locator(".error").innerText()), /STORE_(UNREACHABLE|CORS)/);
});

test("an empty table, and one without indexes, have a state of their own", async (t) => {
  const folder = scratch(t);
  copyTable(t, "empty_table_indexed", folder);
  copyTable(t, "one_row", folder);
  const { open, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("empty_table_indexed")}`);
  await page.waitForSelector(".layout .empty", WAIT);
  assert.equal(await meter(page, "rows"), "0");
  assert.equal(plain(await page.locator(".index-percent").first().innerText()), "no rows");
  assert.match(plain(await page.locator(".health").innerText()), /No rows yet/);
  assert.deepEqual(problems, []);
});

test("the scripts of the page are under 200 KB compressed, without the engine", () => {
  const dist = path.join(ROOT, "www", "dist");
  const scripts = readdirSync(dist).filter((name) => name.endsWith(".js"));
  const bytes = scripts.reduce((sum, name) => sum + gzipSync(readFileSync(path.join(dist, name))).length, 0);
  assert.ok(scripts.length >= 2);
  assert.ok(bytes < 200_000, `${bytes} bytes`);
});
