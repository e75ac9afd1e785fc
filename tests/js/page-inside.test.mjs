// What segments hold, on the page, in a real Chromium: pages, zones, keys and tokens as pictures and as a table that goes through all.
import assert from "node:assert/strict";
import test from "node:test";
import { open as openTable } from "../../pkg/dist/node.js";
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
