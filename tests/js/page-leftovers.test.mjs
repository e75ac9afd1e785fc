// What failed jobs leave behind, on the page, in a real Chromium: listed with its age, and removed only when it is ticked.
import assert from "node:assert/strict";
import { existsSync, readdirSync, utimesSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { buildSegment, open as openTable } from "../../pkg/dist/node.js";
import { axe, LOOKS, wider } from "../support/page_axe.mjs";
import { pageOn } from "../support/page_browser.mjs";
import { copyTable, scratch } from "./support.mjs";

const WAIT = { timeout: 60_000 };
const NAME = "fragments_one_wide";
const plain = (text) => text.replace(/[\u202f\u00a0]/g, " ").trim();

/** Builds a segment that nobody commits, `days` ago. */
async function staged(target, days) {
  const table = await openTable(target);
  const [task] = (await table.planRefresh("k_idx")).tasks;
  const { uuid } = await buildSegment(task, table.store);
  const folder = path.join(target, "_indices", uuid);
  const at = new Date(Date.now() - days * 86_400_000);
  for (const file of readdirSync(folder)) utimesSync(path.join(folder, file), at, at);
  return { uuid, files: readdirSync(folder), left: () => existsSync(folder) ? readdirSync(folder) : [] };
}

test("leftovers: what would go and why the rest stays; only what is ticked goes, and nothing that is young", async (t) => {
  const folder = scratch(t);
  const target = copyTable(t, NAME, folder);
  const [old, other, young] = [await staged(target, 9), await staged(target, 8), await staged(target, 3)];
  const { open, shot, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table(NAME)}`);
  const dialog = page.locator("dialog");
  await page.getByRole("button", { name: "Find leftovers…" }).press("Enter", WAIT);
  await dialog.getByRole("button", { name: "Tick what to remove" }).waitFor(WAIT);
  assert.equal(new URL(page.url()).searchParams.get("orphans"), "table");
  assert.ok(await dialog.getByRole("button", { name: "Tick what to remove" }).isDisabled());
  const { orphans } = await (await openTable(target)).orphans();
  assert.equal(await dialog.locator(".row-maps tbody tr").count(), orphans.length);
  assert.match(plain(await dialog.locator(".row-maps tbody tr", { hasText: young.uuid.slice(0, 8) }).innerText()), /^stays\s+3 days\s.*too young/s);
  assert.match(plain(await dialog.locator("h3").innerText()), /, 2 of them old enough to go$/);
  // A younger age is another plan, which begins without a tick; under a day nothing may go.
  await dialog.getByLabel(`Remove _indices/${old.uuid}`).check();
  await dialog.getByLabel("Days", { exact: true }).fill("0");
  await dialog.getByLabel("Days", { exact: true }).press("Tab");
  assert.equal(await dialog.getByLabel("Days", { exact: true }).inputValue(), "1");
  await dialog.getByLabel(`Remove _indices/${young.uuid}`).waitFor(WAIT);
  assert.equal(await dialog.locator(".row-maps input:checked").count(), 0);
  await shot(page, "page-leftovers");
  await dialog.getByLabel(`Remove _indices/${old.uuid}`).press("Space");
  const primary = dialog.locator(".dialog-foot .primary:enabled");
  assert.match(plain(await primary.innerText()), /^Remove 1 leftover, [\d.]+ (B|KB)$/);
  assert.deepEqual(old.left(), old.files, "a list removes nothing");
  await primary.press("Enter");
  await page.waitForSelector(".report", WAIT);
  assert.match(plain(await page.locator(".report-head").innerText()), new RegExp(`^${old.files.length} files? removed, [\\d.]+ (B|KB)\\. No version was written\\.$`));
  assert.match(await page.locator(".command code").innerText(), /^whetstone orphans http\S+ --older-than 1d --remove$/);
  assert.deepEqual([old.left(), other.left(), young.left()], [[], other.files, young.files]);
  await shot(page, "page-leftovers-report");
  assert.deepEqual(problems, []);
});

test("a lost race whose files could not be removed: they are, once that is asked for", async (t) => {
  const folder = scratch(t);
  const target = copyTable(t, NAME, folder);
  const { open, shot, stand, table } = await pageOn(t, folder);
  const { page } = await open(`?url=${table(NAME)}&refresh=k_idx`);
  const dialog = page.locator("dialog");
  let locked = true;
  // The index is dropped before the first file is there, and nothing can be deleted for the time being.
  let dropped = null;
  stand((request) => (request.method === "DELETE" && locked) || (request.method === "PUT" && request.url.includes("/_indices/")), (request, response, listener) => {
    if (request.method === "DELETE") {
      response.writeHead(403).end();
      return;
    }
    dropped ??= openTable(target).then((other) => other.dropIndex("k_idx"));
    dropped.then(() => listener(request, response));
  });
  await dialog.locator(".dialog-foot .primary:enabled").click(WAIT);
  await page.waitForSelector("dialog .error", WAIT);
  assert.match(plain(await dialog.locator(".error").innerText()), /INDEX_DROPPED/);
  assert.match(plain(await dialog.locator(".error").innerText()), /Left behind\s+\d+ files?: _indices/);
  await dialog.getByRole("button", { name: "Remove what is left…" }).click();
  const run = dialog.locator(".dialog-foot .primary:enabled").filter({ hasText: /^Remove \d+ staged files?, / });
  await run.waitFor(WAIT);
  assert.match(plain(await dialog.locator(".plan-body").innerText()), /Nothing of the job was committed: no transaction was sent for them, and no version names them\./);
  await shot(page, "page-discard");
  const segments = async () => (await (await openTable(target)).orphans()).orphans.filter((one) => one.what === "segment").length;
  const before = await segments();
  locked = false;
  await run.click();
  await page.waitForSelector(".report", WAIT);
  assert.match(plain(await dialog.locator(".report-head").innerText()), /^[1-9]\d* files? removed/);
  assert.equal(await segments(), before - 1);
});

test("the dialog of leftovers, wide and on a phone, light and dark: no finding, nothing wider than the screen", async (t) => {
  const folder = scratch(t);
  const target = copyTable(t, NAME, folder);
  for (const days of [9, 8, 3]) await staged(target, days);
  const { open, shot, table } = await pageOn(t, folder);
  for (const look of LOOKS) {
    const { page } = await open(`?url=${table(NAME)}&orphans=table`, look);
    await page.locator(".row-maps thead input").check(WAIT);
    assert.deepEqual(await axe(page), [], look.name);
    assert.equal(await wider(page), 0, look.name);
    await shot(page, `leftovers-${look.name}`);
    if (look === LOOKS.at(-1)) {
      await page.locator(".dialog-foot .primary:enabled").click();
      await page.waitForSelector(".report", WAIT);
      assert.deepEqual(await axe(page), []);
      assert.equal(await wider(page), 0);
      await shot(page, `leftovers-report-${look.name}`);
    }
    await page.context().close();
  }
});
