// Creating, merging, dropping and looking into indexes on the page, in a real Chromium, on tables written by Lance.
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { open as openTable } from "../../pkg/dist/node.js";
import { pageOn } from "../support/page_browser.mjs";
import { copyTable, scratch } from "./support.mjs";

const WAIT = { timeout: 60_000 };
const plain = (text) => text.replace(/[\u202f\u00a0]/g, " ").trim();
const manifests = (folder, name) => readdirSync(path.join(folder, `${name}.lance`, "_versions")).filter((file) => file.endsWith(".manifest")).length;

test("create, merge and drop an index: each shows its plan first and its report afterwards", async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder);
  const { open, shot, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("fragments_200")}`);
  const dialog = page.locator("dialog");
  const versions = manifests(folder, "fragments_200");

  await page.getByRole("button", { name: "Create an index…" }).click(WAIT);
  assert.ok(await dialog.getByRole("button", { name: "Create the index" }).isDisabled(), "nothing was chosen yet");
  await dialog.getByLabel("Column").selectOption("v");
  assert.equal(await dialog.getByLabel("Name").inputValue(), "v_idx_2", "a free name is proposed");
  await dialog.getByLabel("Method").selectOption("ZONEMAP");
  await dialog.getByLabel("Parameters").fill("rows_per_zone");
  assert.match(plain(await dialog.locator("#params-hint").innerText()), /key=value/);
  await dialog.getByLabel("Parameters").fill("rows_per_zone=16");
  await dialog.getByRole("button", { name: "More segments" }).click();
  const create = dialog.getByRole("button", { name: "Create: index 200 fragments in 2 segments" });
  await create.waitFor(WAIT);
  await shot(page, "page-create");
  await create.click();
  await page.waitForSelector(".report", WAIT);
  assert.match(plain(await page.locator(".report-head").innerText()), /200 fragments indexed in 2 new segments/);
  assert.match(await page.locator(".command code").innerText(), /^whetstone create-index http\S+ v_idx_2 v ZONEMAP --num-segments 2 --param rows_per_zone=16$/);
  await dialog.getByRole("button", { name: "Done" }).click();

  await page.locator(".index-item", { hasText: "v_idx_2" }).locator("button.index-row").click(WAIT);
  await page.locator(".segments").getByRole("button", { name: "Merge…" }).click();
  await dialog.getByRole("button", { name: "Merge 2 segments into 1" }).click(WAIT);
  await page.waitForSelector(".report", WAIT);
  assert.match(plain(await page.locator(".report-head").innerText()), /2 segments merged into 1/);
  await shot(page, "page-merge");
  await dialog.getByRole("button", { name: "Done" }).click();

  const merged = await (await openTable(path.join(folder, "fragments_200.lance"))).index("v_idx_2");
  assert.equal(merged.num_segments, 1);
  assert.equal(merged.indexed_percent, 100);

  await page.locator(".segments").getByRole("button", { name: "Drop…" }).click(WAIT);
  await page.waitForSelector(".plan .fates li", WAIT);
  await shot(page, "page-drop");
  await dialog.getByRole("button", { name: "Drop v_idx_2" }).click(WAIT);
  await page.waitForSelector(".report", WAIT);
  assert.match(plain(await page.locator(".report-head").innerText()), /v_idx_2 dropped\. Version/);
  await dialog.getByRole("button", { name: "Done" }).click();
  await page.waitForFunction(() => ![...document.querySelectorAll(".index-name")].some((one) => one.textContent === "v_idx_2"), null, WAIT);
  assert.equal(manifests(folder, "fragments_200"), versions + 3, "one version each");
  assert.deepEqual(problems, []);
});

test("a name that is taken is refused before anything is built; a deferred index covers nothing", async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder);
  const { open, table } = await pageOn(t, folder);
  const { page } = await open(`?url=${table("fragments_200")}&create=index`);
  const dialog = page.locator("dialog");
  await dialog.getByLabel("Column").selectOption("v", WAIT);
  await dialog.getByLabel("Name").fill("k_idx");
  await page.waitForSelector(".plan .error", WAIT);
  assert.match(plain(await page.locator(".plan .error").innerText()), /INDEX_EXISTS/);
  await dialog.getByLabel("Name").fill("later");
  await dialog.getByText("Define now, index later").click();
  await dialog.getByRole("button", { name: "Create the index, empty" }).click(WAIT);
  await page.waitForSelector(".report", WAIT);
  await dialog.getByRole("button", { name: "Done" }).click();
  assert.match(plain(await page.locator(".health").innerText()), /later is defined but covers nothing yet: 200 fragments are scanned/);
});

test("look inside: contents, an audit that finds the lie and one that finds none, a probe", async (t) => {
  const folder = scratch(t);
  copyTable(t, "stale_pages_delta", folder);
  copyTable(t, "bitmap_all_types", folder);
  const { open, shot, table } = await pageOn(t, folder);
  const healthy = await open(`?url=${table("bitmap_all_types")}`);
  const { page } = healthy;
  const row = page.locator(".index-item", { hasText: "lstr_idx" }).locator("button.index-row");
  await row.click(WAIT);
  await page.getByRole("button", { name: "contents", exact: true }).click();
  await page.waitForSelector(".contents-bars li", WAIT);
  assert.match(plain(await page.locator(".contents").innerText()), /bitmaps\s+35\b/);
  await shot(page, "page-contents");
  await page.getByRole("button", { name: "audit", exact: true }).click();
  await page.locator(".ask").getByRole("button", { name: /^Audit \d+ fragments?$/ }).click(WAIT);
  await page.waitForSelector('.audit[data-clean="true"]', WAIT);
  await page.getByRole("button", { name: "probe", exact: true }).click();
  await page.getByLabel("Value").fill("golf1");
  await page.getByRole("button", { name: "Ask" }).click();
  await page.waitForSelector(".probe-answer", WAIT);
  assert.match(plain(await page.locator(".probe-answer").innerText()), /rows that match\s+4\b/);
  await shot(page, "page-probe");
  assert.deepEqual(healthy.problems, []);

  const lying = await open(`?url=${table("stale_pages_delta")}`);
  await lying.page.locator(".index-item", { hasText: "k_idx" }).locator("button.index-row").click(WAIT);
  await lying.page.getByRole("button", { name: "audit", exact: true }).click();
  await lying.page.locator(".ask").getByRole("button", { name: /^Audit/ }).first().click(WAIT);
  await lying.page.waitForSelector('.audit[data-clean="false"]', WAIT);
  assert.ok(await lying.page.locator(".findings li").count() > 0);
  await shot(lying.page, "page-audit");
});

test("what a version changed; an address that is dropped opens; the table is listed as opened before", async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder);
  copyTable(t, "one_row", folder);
  mkdirSync(path.join(folder, "samples"));
  writeFileSync(path.join(folder, "samples", "index.json"), "[]");
  const { open, shot, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("fragments_200")}`);
  await page.getByRole("button", { name: "Changes from the version before" }).click(WAIT);
  await page.waitForSelector(".change-list li", WAIT);
  assert.match(plain(await page.locator("#changes-title").innerText()), /Changes from version 3 to 4/);
  await page.getByRole("slider", { name: "Version" }).focus();
  await page.keyboard.press("Home");
  await page.waitForFunction(() => /is the oldest/.test(document.querySelector("#changes-title").textContent), null, WAIT);
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => /from version 1 to 2/.test(document.querySelector("#changes-title")?.textContent ?? "") && document.querySelector(".change-list li"), null, WAIT);
  await shot(page, "page-changes");
  await page.evaluate((address) => {
    const carried = new DataTransfer();
    carried.setData("text/uri-list", `# a comment\r\n${address}`);
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: carried, bubbles: true, cancelable: true }));
  }, table("one_row"));
  await page.waitForFunction(() => /one_row/.test(document.querySelector(".table-name").textContent), null, WAIT);
  await page.waitForSelector(".map canvas, .layout .empty", WAIT);
  await page.locator("button.table-name").click();
  assert.match(await page.locator(".recent").innerText(), /fragments_200\.lance/);
  await page.locator(".recent button", { hasText: "fragments_200" }).click();
  await page.waitForFunction(() => /fragments_200/.test(document.querySelector(".table-name").textContent), null, WAIT);
  assert.deepEqual(problems, []);
});
