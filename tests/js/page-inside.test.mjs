// What segments hold, on the page, in a real Chromium: pages, zones, keys and tokens as pictures and as a table that goes through all.
import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { createSandbox, open as openTable } from "../../pkg/dist/node.js";
import { pageOn } from "../support/page_browser.mjs";
import { copyTable, scratch } from "./support.mjs";

const WAIT = { timeout: 60_000 };
const plain = (text) => text.replace(/[\u202f\u00a0]/g, " ").trim();

test("pages as a strip, zones as a heat map, keys and tokens by how many rows they have", async (t) => {
  const folder = scratch(t);
  const source = await openTable(copyTable(t, "segments_built_apart", folder));
  const { open, shot, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("segments_built_apart")}`);
  for (const { name } of await source.indexes()) {
    const segments = await source.inspect(name);
    await page.goto(`${page.url().split("?")[0]}?url=${table("segments_built_apart")}&sel=index:${name}`);
    await page.getByRole("button", { name: "contents", exact: true }).click(WAIT);
    await page.waitForSelector(".contents-segment .parts", WAIT);
    assert.equal(await page.locator(".parts").count(), segments.length, name);
    const first = page.locator(".parts").first();
    const { parts } = segments[0];
    const numbers = async () => (await first.locator(".contents-bars .num").allInnerTexts()).map((text) => Number(plain(text).replace(/\D/g, "")));
    if (parts.kind === "pages") assert.equal(await first.locator(".page-strip rect").count(), parts.count);
    else if (parts.kind === "zones") assert.equal(await first.locator(".heat rect").count(), parts.count);
    else assert.equal((await numbers()).reduce((sum, n) => sum + n, 0), parts.count, `${name}: every one is counted once`);
    await first.locator("summary").click();
    const rows = first.locator("tbody tr");
    assert.equal(await rows.count(), Math.min(20, parts.count));
    const [item] = parts.items;
    const shown = plain(await rows.first().innerText());
    for (const value of [item.key, item.token, item.min, item.max, item.fragment, item.page]) if (value !== undefined) assert.ok(shown.includes(String(value)), `${name}: ${shown} for ${value}`);
    if (parts.kind === "zones" || parts.kind === "pages") await shot(page, `page-inside-${name}`);
    if (parts.count <= 40) continue;
    const next = first.getByRole("button", { name: "Next" });
    await next.click();
    await page.waitForFunction(() => /page 2 of/.test(document.querySelector(".parts .pager").textContent), null, WAIT);
    assert.ok(plain(await rows.first().innerText()).startsWith(String(parts.items[20].key)), name);
    await shot(page, "page-inside-keys");
  }
  assert.deepEqual(problems, []);
});

test("a segment with more than a thousand pages, zones and keys is gone through to its last one", async (t) => {
  const folder = scratch(t);
  const source = await createSandbox(path.join(folder, "many.lance"), { columns: [{ name: "id", type: "int64", nullable: false }, { name: "word", type: "utf8", shape: "sequence" }], rows: 2020, rowsPerFragment: 1010 });
  for (const [name, column, method, params] of [["pages", "id", "BTREE", { zone_size: 2 }], ["zones", "id", "ZONEMAP", { rows_per_zone: 2 }], ["keys", "word", "BITMAP", {}]]) {
    await source.createIndex(name, column, method, { params, workers: 1 });
  }
  const { open, table, shot } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("many")}`);
  for (const name of ["pages", "zones", "keys"]) {
    const [segment] = await source.inspect(name);
    assert.deepEqual([segment.parts.kind, segment.parts.items.length, segment.parts.left_out >= 10], [name, 1000, true]);
    const { uuid, parts: { count } } = segment;
    const last = Math.ceil(count / 20);
    await page.goto(`${page.url().split("?")[0]}?url=${table("many")}&sel=index:${name}`);
    await page.getByRole("button", { name: "contents", exact: true }).click(WAIT);
    const parts = page.locator(".parts");
    await parts.locator("summary").click(WAIT);
    assert.match(plain(await parts.locator("figcaption").innerText()), new RegExp(`the first 1 000 of ${count.toLocaleString("en").replace(",", " ")}$`));
    const next = parts.getByRole("button", { name: "Next" });
    const numbered = (number) => page.waitForFunction(([wanted]) => {
      const table = document.querySelector(".parts tbody");
      return document.querySelector(".parts .pager").textContent.includes(`page ${wanted} of`) && table.closest("[aria-busy]").getAttribute("aria-busy") === "false" && table.rows.length > 0;
    }, [number], WAIT);
    // The rows on screen are those of the segment, also behind the first thousand, and again in front of it.
    const shown = async (number) => {
      await numbered(number);
      const { items } = await source.parts(name, uuid, { offset: (number - 1) * 20, limit: 20 });
      const cells = (text) => text.split("\t").map((cell) => plain(cell).replaceAll(" ", ""));
      const lines = (await parts.locator("tbody tr").allInnerTexts()).map(cells);
      assert.equal(lines.length, items.length, `${name}, page ${number}`);
      items.forEach((item, i) => {
        for (const key of ["page", "fragment", "start", "min", "max", "key"]) {
          if (key in item) assert.ok(lines[i].includes(String(item[key]).replaceAll(" ", "")), `${name}, page ${number}: ${lines[i]} for ${key} ${item[key]}`);
        }
      });
    };
    await shown(1);
    await next.evaluate((button) => { for (let i = 0; i < 49; i += 1) setTimeout(() => button.click(), i * 4); });
    await shown(50);
    await next.click();
    await shown(51);
    await parts.getByRole("button", { name: "Previous" }).click();
    await shown(50);
    for (let at = 50; at < last; at += 1) {
      await next.click();
      await numbered(at + 1);
    }
    await shown(last);
    assert.ok(await next.isDisabled(), name);
    if (name === "zones") await shot(page, "page-inside-many");
  }
  assert.deepEqual(problems, []);
});
