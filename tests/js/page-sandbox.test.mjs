// Jobs on sandbox tables through the page's dialogs, in the browser's own storage and in memory, and what is left when their tab ends.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { open as openTable } from "../../pkg/dist/node.js";
import { pageOn, siteWith, stored } from "../support/page_browser.mjs";
import { scratch } from "./support.mjs";

const WAIT = { timeout: 60_000 };
const NO_STORAGE = "navigator.storage.getDirectory = () => Promise.reject(new DOMException('not here', 'SecurityError'));";

/** Manifests of the browser's own storage are stuck before or after they are there, as a file says that the test writes. */
const STALLS = `{
  const root = () => navigator.storage.getDirectory();
  const how = async () => { try { return await (await (await (await root()).getFileHandle("stall")).getFile()).text(); } catch { return ""; } };
  const stuck = async () => { await (await root()).getFileHandle("stuck", { create: true }); await new Promise(() => {}); };
  const move = FileSystemFileHandle.prototype.move;
  FileSystemFileHandle.prototype.move = async function (folder, name) {
    const now = folder.name === "_versions" ? await how() : "";
    if (now === "before") await stuck();
    await move.call(this, folder, name);
    if (now === "after") await stuck();
  };
}`;

const stall = (page, how) => page.evaluate(async (how) => {
  const root = await navigator.storage.getDirectory();
  const stream = await (await root.getFileHandle("stall", { create: true })).createWritable();
  await stream.write(how);
  await stream.close();
  await root.removeEntry("stuck").catch(() => undefined);
}, how);

/** What the page remembers of commits. */
const remembered = (page) => page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith("whetstone.commit.")));

/** A folder that offers no samples, and says so. */
function without(t) {
  const folder = scratch(t);
  mkdirSync(path.join(folder, "samples"));
  writeFileSync(path.join(folder, "samples", "index.json"), "[]");
  return folder;
}

/** Makes a table of four fragments, half of every one deleted, with an index over it. */
async function made(page) {
  const dialog = page.locator("dialog");
  const bar = page.locator(".sandbox-bar");
  await page.getByRole("button", { name: "New table…" }).click(WAIT);
  await dialog.getByLabel("Rows", { exact: true }).fill("800");
  await dialog.getByLabel("Rows per fragment").fill("200");
  await dialog.getByRole("button", { name: "Make 800 rows in 4 fragments" }).click(WAIT);
  await page.waitForSelector(".map canvas", WAIT);
  await bar.getByRole("button", { name: "Delete", exact: true }).click(WAIT);
  await bar.getByLabel("Rows where").fill("true");
  await bar.getByLabel("Every n-th").fill("2");
  await bar.getByRole("button", { name: "Delete rows" }).click(WAIT);
  await bar.getByText(/400 rows deleted/).waitFor(WAIT);
  await page.getByRole("button", { name: "Create an index…" }).click(WAIT);
  await dialog.getByLabel("Column").selectOption("user_id", WAIT);
  await dialog.getByRole("button", { name: /^Create: index 4/ }).click(WAIT);
  await page.waitForSelector(".report", WAIT);
  await dialog.getByRole("button", { name: "Done" }).click(WAIT);
}

/** Compacts the table on screen through the dialog; answers what its report says. */
async function compacted(page, defer) {
  const dialog = page.locator("dialog");
  await page.locator(".layout .panel-head").getByRole("button", { name: "Compact…" }).click(WAIT);
  if (defer) await dialog.getByText("Leave the indexes alone").click(WAIT);
  await page.waitForFunction((word) => document.querySelector(".plan-body:not(.is-stale)")?.textContent.includes(word), defer ? "DEFERRED" : "REMAPPED", WAIT);
  await dialog.locator(".primary:enabled").filter({ hasText: "Rewrite 4 fragments into 1" }).click(WAIT);
  await page.waitForSelector(".report, dialog .error", WAIT);
  const text = await page.locator(".report, dialog .error").innerText();
  return text.replace(/[\u202f\u00a0]/g, " ");
}

/** The table as it is taken along, unpacked. */
async function taken(page, folder, name) {
  const [download] = await Promise.all([page.waitForEvent("download", WAIT), page.locator(".sandbox-bar").getByRole("button", { name: "Download" }).click(WAIT)]);
  await download.saveAs(path.join(folder, `${name}.tar`));
  mkdirSync(path.join(folder, name));
  execFileSync("tar", ["-xf", path.join(folder, `${name}.tar`), "-C", path.join(folder, name)]);
  return path.join(folder, name, "orders.lance");
}

/** Data files of a table in a folder that no version of it names. */
async function unnamed(target) {
  const table = await openTable(target);
  const named = new Set();
  for (const { version } of await table.versions()) for (const { data_files: files } of await (await table.at(version)).fragments()) for (const file of files) named.add(file.path);
  return readdirSync(path.join(target, "data")).filter((file) => !named.has(file));
}

for (const kept of [true, false]) {
  test(`compactions of sandbox tables ${kept ? "in the browser’s own storage" : "in memory"}, the indexes remapped and left alone`, async (t) => {
    const folder = without(t);
    const { open } = await pageOn(t, folder, ...(kept ? [] : [siteWith(path.join(folder, "site"), NO_STORAGE)]));
    const { page, problems } = await open("");
    for (const defer of [false, true]) {
      await made(page);
      const text = await compacted(page, defer);
      assert.match(text, /4 fragments became 1\. Version 3 → 5\./);
      assert.match(text, defer ? /1 deferred/ : /1 remapped/);
      await page.locator("dialog").getByRole("button", { name: "Done" }).click(WAIT);
      const target = await taken(page, folder, `taken-${defer}`);
      const table = await openTable(target);
      assert.deepEqual([table.version, table.rows, (await table.fragments()).length, await unnamed(target)], [5, 400, 1, []]);
      assert.equal((await table.history()).transitions.length, defer ? 1 : 0);
      assert.deepEqual((await table.audit("user_id_idx")).findings, []);
    }
    assert.deepEqual(await remembered(page), [], "what is over is not remembered");
    assert.deepEqual(problems, []);
  });
}

test("a tab that ends while a sandbox table is changed or compacted: the next one says what became of it, and only what versions name is taken along", async (t) => {
  const folder = without(t);
  const { open } = await pageOn(t, folder, siteWith(path.join(folder, "site"), STALLS));
  const { page } = await open("");
  await made(page);
  // In a tab of its own, which is closed once a manifest is stuck on its way.
  const ended = async (how, begin) => {
    await stall(page, how);
    const tab = await page.context().newPage();
    await tab.goto(page.url());
    await tab.waitForSelector(".map canvas", WAIT);
    await begin(tab);
    await stored(page, "stuck");
    await tab.close();
    await stall(page, "");
    await page.reload();
    const note = page.locator(".unfinished li");
    await note.waitFor(WAIT);
    return { fate: await note.getAttribute("data-fate"), text: (await note.innerText()).replace(/[\u202f\u00a0]/g, " "), dismiss: () => note.getByRole("button", { name: "Dismiss" }).click(WAIT) };
  };
  const append = async (tab) => {
    await tab.locator(".sandbox-bar").getByLabel("Rows", { exact: true }).fill("50", WAIT);
    await tab.locator(".sandbox-bar").getByRole("button", { name: "Append rows" }).click(WAIT);
  };
  const landed = await ended("after", append);
  assert.match(landed.text, /^An append was being committed when its tab was closed\. It landed: version 4 is its work\./);
  await landed.dismiss();
  const pending = await ended("before", async (tab) => {
    await tab.locator(".layout .panel-head").getByRole("button", { name: "Compact…" }).click(WAIT);
    await tab.locator("dialog .primary:enabled").filter({ hasText: "Rewrite" }).click(WAIT);
  });
  assert.match(pending.text, /^A compaction was being committed when its tab was closed\. It has not landed so far/);
  // Somebody else has that version now.
  await append(page);
  const lost = page.locator('.unfinished li[data-fate="lost"]');
  await lost.waitFor(WAIT);
  assert.match(await lost.innerText(), /fragments and indexes are as they were\. Data and index files it uploaded may be left\./);
  await lost.getByRole("button", { name: "Dismiss" }).click();
  const target = await taken(page, folder, "taken");
  await page.getByText(/Left out: \d+ files? that no version names/).waitFor(WAIT);
  const table = await openTable(target);
  assert.deepEqual([table.version, table.rows, await unnamed(target), (await table.orphans()).orphans.filter((one) => one.what === "segment")], [5, 500, [], []]);
  // Made anew, it has no past.
  await ended("before", append);
  await made(page);
  assert.deepEqual([await page.locator(".unfinished li").count(), await remembered(page)], [0, []]);
});
