// The sandbox and the lessons in a real Chromium: every lesson is played to its end on real tables, and what is made can be taken along.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import test from "node:test";
import { open as openTable } from "../../pkg/dist/node.js";
import { pageOn, siteWith, stored } from "../support/page_browser.mjs";
import { pageModules } from "../support/page_modules.mjs";
import { scratch } from "./support.mjs";

const WAIT = { timeout: 60_000 };
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const plain = (text) => text.replace(/[\u202f\u00a0]/g, " ").trim();
const { LESSONS, actsBefore, formatState, outcomeOf, parseState, parseSet, wholeIn, tableNameFault } = await pageModules("lessons/lessons", "lib/url", "sandbox/presets", "sandbox/outcome");

async function axe(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.target.join(" ")).join("; ")}`);
}

/** Sums up what moved by itself from now on; what a key or a click moves does not count, as in the field's own measure. */
const watchShifts = (page) => page.evaluate(() => {
  globalThis.shifted = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) globalThis.shifted.push({ value: entry.value, who: entry.sources.map(({ node }) => node?.className ?? node?.nodeName) });
  }).observe({ type: "layout-shift", buffered: false });
});

/** A folder that offers no samples, and says so. */
function without(t) {
  const folder = scratch(t);
  mkdirSync(path.join(folder, "samples"));
  writeFileSync(path.join(folder, "samples", "index.json"), "[]");
  return folder;
}

const dialogs = (page) => page.locator("dialog");
const panel = (page) => page.locator(".lesson");
const isDone = (page) => page.waitForFunction(() => document.querySelector(".lesson-status")?.textContent.trim().startsWith("Done"), null, WAIT);

test("a lesson's step is in the address; what fields hold is read strictly", () => {
  for (const lesson of LESSONS) {
    for (const step of lesson.steps.keys()) {
      const address = formatState({ ...parseState(""), url: `sandbox:${lesson.id}`, lesson: { id: lesson.id, step } });
      assert.deepEqual(parseState(address).lesson, { id: lesson.id, step });
      for (const part of ["do", "watch", "why"]) assert.ok(lesson.steps[step][part].length >= 8, `${lesson.id}: ${part}`);
    }
  }
  assert.ok(LESSONS.length >= 6);
  assert.equal(parseState("?lesson=../x.1").lesson, null);
  assert.deepEqual(parseState("?lesson=deferred").lesson, { id: "deferred", step: 0 });
  assert.deepEqual(parseSet("a = 'it''s', b=-1.5 ,c = NULL, d=true"), { a: "it's", b: -1.5, c: null, d: true });
  for (const bad of ["", "a", "a = b", "a = 'x", "a = 1 b = 2", "a == 1"]) assert.equal(parseSet(bad), null, bad);
  assert.deepEqual(["12", "1 000", "0", "-1", "1e3", "999999999999"].map((text) => wholeIn(text, 1, 10_000)), [12, 1000, null, null, null, null]);
  assert.equal(tableNameFault("fine-1", []), null);
  assert.match(tableNameFault("../x", []), /letters/);
  assert.match(tableNameFault("mine", ["mine"]), /made anew/);
});

test("what an act did is said in one sentence, and nothing is said to be done that was not", () => {
  const nothing = { change: null, compaction: null, established: [], held: null, refused: null };
  const said = (report) => outcomeOf({ ...nothing, ...report });
  const change = { kind: "append", rows: 1200, fragments_added: [4, 5], fragments_changed: [], fragments_removed: [], version: 7, version_before: 6 };
  const compaction = { transaction: "t", fragments_removed: [0, 1, 2], fragments_added: [3], rows: 1500, deleted_rows: 1, segments_remapped: 0, version: 9 };
  assert.equal(said({}), null);
  assert.equal(plain(said({ change })), "1 200 rows appended: 2 fragments added. Version 7 is the latest.");
  assert.equal(said({ change: { ...change, kind: "delete", rows: 0, fragments_added: [] } }), "No row meets that: nothing was changed.");
  assert.equal(plain(said({ compaction })), "3 fragments became 1: 1 500 rows written again, 1 deleted row gone.");
  assert.match(plain(said({ compaction: { ...compaction, deleted_rows: 0, segments_remapped: 2 } })), /written again, 2 segments remapped\.$/);
  assert.equal(said({ compaction: { ...compaction, transaction: null } }), "There was nothing to rewrite. Version 9 is still the latest.");
  assert.equal(said({ held: { index: "i", segments: 1, fragments: [2, 3] } }), "1 segment built over 2 fragments, in no version.");
  assert.equal(said({ refused: { code: "INDEX_DROPPED" }, established: [1] }), "INDEX_DROPPED, nothing was changed.");
  assert.equal(said({ established: [1, 2] }), "established {1, 2}.");
});

for (const [at, lesson] of LESSONS.entries()) {
  const narrow = at % 2 === 1;
  test(`the lesson “${lesson.title}” from its card to its end, ${narrow ? "on a phone in the dark" : "wide and light"}`, async (t) => {
    const { open, shot } = await pageOn(t, without(t));
    const { page, problems } = await open("", narrow ? { width: 390, height: 844, dark: true } : {});
    await page.locator(`[data-lesson="${lesson.id}"]`).click(WAIT);
    await page.waitForSelector(".map canvas", WAIT);
    for (const [i, step] of lesson.steps.entries()) {
      assert.equal(plain(await panel(page).locator(".lesson-do > p").first().innerText()), step.do);
      const button = panel(page).getByRole("button", { name: step.button, exact: true });
      const next = panel(page).getByRole("button", { name: /^(Next|Next lesson|Finish)$/ });
      await button.and(page.locator(":enabled")).waitFor(WAIT);
      assert.ok(await next.isDisabled(), `step ${i + 1} is not done before anything was done`);
      if (i === 0) await watchShifts(page);
      await button.press("Enter");
      await isDone(page);
      assert.ok(await button.isDisabled(), "what is done is not done again");
      assert.match(page.url(), new RegExp(`lesson=${lesson.id}\\.${i + 1}`));
      await shot(page, `lesson-${lesson.id}-${i + 1}`);
      if (i === 0 || i === lesson.steps.length - 1) {
        assert.deepEqual(await axe(page), [], `${lesson.id}, step ${i + 1}`);
        assert.equal(await page.evaluate(() => Math.max(0, document.documentElement.scrollWidth - innerWidth)), 0, "nothing is wider than the screen");
      }
      if (i < lesson.steps.length - 1) await next.click();
    }
    const shifts = await page.evaluate(() => globalThis.shifted);
    assert.ok(shifts.reduce((sum, shift) => sum + shift.value, 0) < 0.1, `things moved by themselves: ${JSON.stringify(shifts)}`);
    assert.deepEqual(problems, []);
  });
}

test("a link into the middle of a lesson makes the table as it is there; the page's own buttons count as well", async (t) => {
  const { open } = await pageOn(t, without(t));
  const deferred = LESSONS.find((one) => one.id === "deferred");
  const { page, problems } = await open("?url=sandbox:deferred&lesson=deferred.3");
  await panel(page).getByRole("button", { name: "Refresh in 4 segments", exact: true }).and(page.locator(":enabled")).waitFor(WAIT);
  assert.equal(plain(await page.locator('[data-meter="fragments"] dd').innerText()), "8");
  assert.equal(actsBefore(deferred, 2).length, 2);
  // Not through the lesson, but as on any table.
  await page.locator(".health").getByRole("button", { name: "Refresh…" }).click(WAIT);
  const dialog = dialogs(page);
  for (let more = 1; more < 4; more += 1) await dialog.getByRole("button", { name: "More segments" }).click(WAIT);
  await dialog.getByRole("button", { name: "Index 8 fragments in 4 segments" }).click(WAIT);
  await page.waitForSelector(".report", WAIT);
  await dialog.getByRole("button", { name: "Done" }).click();
  await isDone(page);
  // A step before shows that it is over, and starting over makes the first one possible again.
  await page.getByRole("button", { name: "Start over" }).click();
  await panel(page).getByRole("button", { name: "Define the index", exact: true }).and(page.locator(":enabled")).waitFor(WAIT);
  assert.equal(plain(await page.locator('[data-meter="fragments"] dd').innerText()), "6");
  // The table is this browser's: the tab may close and come back.
  await page.reload();
  await panel(page).getByRole("button", { name: "Define the index", exact: true }).and(page.locator(":enabled")).waitFor(WAIT);
  await panel(page).getByRole("button", { name: "Leave the lesson" }).click();
  await page.waitForSelector(".sandbox-bar", WAIT);
  assert.ok(!page.url().includes("lesson="));
  assert.deepEqual(problems, []);
});

test("a table of one's own: made, changed, indexed, and taken along as a folder that opens elsewhere", async (t) => {
  const folder = without(t);
  const { open, shot } = await pageOn(t, folder);
  const { page, problems } = await open("");
  await page.getByRole("button", { name: "New table…" }).click(WAIT);
  const dialog = dialogs(page);
  await dialog.getByLabel("Name", { exact: true }).fill("mine");
  await dialog.getByLabel("Begin with the columns of").selectOption("articles");
  await dialog.getByLabel("Rows", { exact: true }).fill("600");
  await dialog.getByLabel("Rows per fragment").fill("200");
  await dialog.getByRole("button", { name: "Add a column" }).click();
  await dialog.getByLabel("Name of column 6").fill("id");
  assert.ok(await dialog.getByRole("button", { name: /^Make/ }).isDisabled(), "a name that is there already");
  await dialog.getByLabel("Name of column 6").fill("score");
  assert.deepEqual(await axe(page), []);
  await shot(page, "sandbox-new");
  await dialog.getByRole("button", { name: "Make 600 rows in 3 fragments" }).click();
  await page.waitForSelector(".map canvas", WAIT);
  const bar = page.locator(".sandbox-bar");
  const said = async (pattern) => {
    await page.waitForFunction(([source]) => new RegExp(source).test(document.querySelector(".sandbox-said").textContent.replace(/[\u202f\u00a0]/g, " ")), [pattern.source], WAIT);
  };
  await bar.getByLabel("Rows", { exact: true }).fill("150");
  await bar.getByLabel("Rows per fragment").fill("100");
  await bar.getByRole("button", { name: "Append rows" }).click();
  await said(/150 rows appended: 2 fragments added. Version 2 is the latest/);
  await bar.getByRole("button", { name: "Delete", exact: true }).click();
  await bar.getByLabel("Rows where").fill("id >= 200 AND id < 400");
  await bar.getByRole("button", { name: "Delete rows" }).click();
  await said(/200 rows deleted: 1 fragment gone/);
  await bar.getByLabel("Rows where").fill("id <");
  await bar.getByRole("button", { name: "Delete rows" }).click();
  await said(/SQL_SYNTAX: a value was expected at the end/);
  await bar.getByRole("button", { name: "Update", exact: true }).click();
  await bar.getByLabel("Rows where").fill("id < 50");
  await bar.getByLabel("Every n-th").fill("5");
  await bar.getByLabel("Set").fill("title = 'it''s new', score = 7");
  await bar.getByRole("button", { name: "Update rows" }).click();
  await said(/10 rows updated: 1 fragment added, 1 deletion vector written/);
  await page.getByRole("button", { name: "Create an index…" }).click();
  await dialog.getByLabel("Column").selectOption("id", WAIT);
  await dialog.getByRole("button", { name: /^Create: index/ }).click(WAIT);
  await page.waitForSelector(".report", WAIT);
  await dialog.getByRole("button", { name: "Done" }).click();
  assert.deepEqual(await axe(page), []);
  await shot(page, "sandbox-bar");

  const [download] = await Promise.all([page.waitForEvent("download", WAIT), bar.getByRole("button", { name: "Download" }).click()]);
  assert.equal(download.suggestedFilename(), "mine.lance.tar");
  const archive = path.join(folder, "mine.tar");
  await download.saveAs(archive);
  execFileSync("tar", ["-xf", archive, "-C", folder]);
  const table = await openTable(path.join(folder, "mine.lance"));
  assert.deepEqual([table.rows, table.version], [550, 5]);
  assert.equal((await table.index("id_idx")).indexed_percent, 100);
  const { lines } = await table.columnLines("title", { offset: 540 });
  assert.equal(lines.trim().split("\n").filter((line) => line.includes("it's new")).length, 10);
  assert.deepEqual((await table.audit("id_idx")).findings, []);
  // It is listed where tables are opened, beside the lessons.
  await page.goto(new URL("./", page.url()).href);
  await page.getByRole("button", { name: "mine", exact: true }).click(WAIT);
  await page.waitForSelector(".map canvas", WAIT);
  await bar.getByRole("button", { name: "Remove…" }).click();
  await bar.getByRole("button", { name: "Remove for good" }).click();
  await page.getByRole("button", { name: "New table…" }).waitFor(WAIT);
  const stored = await page.evaluate(async () => {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("whetstone-sandbox");
    return Array.fromAsync(folder.keys());
  });
  assert.deepEqual(stored, []);
  assert.deepEqual(problems, []);
});

test("a browser without storage of its own keeps the tables in memory, and says so", async (t) => {
  const folder = without(t);
  const site = siteWith(path.join(folder, "site"), "navigator.storage.getDirectory = () => Promise.reject(new DOMException('not here', 'SecurityError'));");
  const { open } = await pageOn(t, folder, site);
  const { page, problems } = await open("");
  await page.getByRole("button", { name: "New table…" }).click(WAIT);
  await dialogs(page).getByText("the table ends with the tab").waitFor(WAIT);
  await dialogs(page).getByRole("button", { name: /^Make/ }).click();
  await page.waitForSelector(".map canvas", WAIT);
  await page.locator(".sandbox-bar").getByRole("button", { name: "Append rows" }).click(WAIT);
  await page.getByText(/Version 2 is the latest/).waitFor(WAIT);
  await page.reload();
  await page.waitForSelector(".error", WAIT);
  assert.match(plain(await page.locator(".error").innerText()), /TABLE_NOT_FOUND/);
  assert.deepEqual(problems, []);
});

test("a full browser: nothing was changed, and the table goes on", async (t) => {
  const folder = without(t);
  const full = `{ const create = FileSystemFileHandle.prototype.createWritable; FileSystemFileHandle.prototype.createWritable = async function (...args) {
    const stream = await create.apply(this, args); const write = stream.write.bind(stream);
    stream.write = (chunk) => (chunk.byteLength > 400_000 ? Promise.reject(new DOMException("no room", "QuotaExceededError")) : write(chunk)); return stream; }; }`;
  const { open } = await pageOn(t, folder, siteWith(path.join(folder, "site"), full));
  const { page, problems } = await open("?url=sandbox:contiguous&lesson=contiguous.1");
  await panel(page).getByRole("button", { name: "Deal them out in turn", exact: true }).and(page.locator(":enabled")).waitFor(WAIT);
  await panel(page).getByRole("button", { name: "Leave the lesson" }).click();
  const bar = page.locator(".sandbox-bar");
  const said = (text) => page.waitForFunction((part) => document.querySelector(".sandbox-said").textContent.includes(part), text, WAIT);
  await bar.getByLabel("Rows", { exact: true }).fill("400000");
  await bar.getByLabel("Rows per fragment").fill("400000");
  await bar.getByRole("button", { name: "Append rows" }).click();
  await said("STORE_FULL");
  assert.equal(plain(await page.locator('[data-meter="fragments"] dd').innerText()), "8");
  await bar.getByLabel("Rows", { exact: true }).fill("100");
  await bar.getByRole("button", { name: "Append rows" }).click();
  await said("100 rows appended");
  assert.deepEqual(problems, []);
});

test("what takes long says how far it is, and cancelled leaves nothing behind", async (t) => {
  const { open, shot } = await pageOn(t, without(t));
  const { page, problems } = await open("");
  const bar = page.locator(".sandbox-bar");
  const dialog = dialogs(page);
  const far = () => page.waitForFunction(() => document.querySelector(".sandbox-outcome progress")?.value > 0.05, null, { ...WAIT, polling: 20 });
  const make = async (rows) => {
    await dialog.getByLabel("Rows", { exact: true }).fill(rows);
    await dialog.getByRole("button", { name: /^Make/ }).click();
  };
  await page.getByRole("button", { name: "New table…" }).click(WAIT);
  await make("2000000");
  await far();
  await bar.getByRole("button", { name: "Cancel" }).click(WAIT);
  await page.locator(".error").getByText("ABORTED").waitFor(WAIT);
  await bar.getByRole("button", { name: "New table…" }).click();
  await make("100");
  await page.waitForSelector(".map canvas", WAIT);
  const stored = () => page.evaluate(async () => {
    let folder = await navigator.storage.getDirectory();
    for (const name of ["whetstone-sandbox", "orders.lance", "data"]) folder = await folder.getDirectoryHandle(name);
    return Array.fromAsync(folder.keys());
  });
  const before = await stored();
  assert.equal(before.length, 1);
  await bar.getByLabel("Rows", { exact: true }).fill("2000000");
  await bar.getByLabel("Rows per fragment").fill("100000");
  await bar.getByRole("button", { name: "Append rows" }).click();
  await far();
  assert.match(plain(await bar.locator(".sandbox-outcome .num").innerText()), /^[\d ]+ of 2 000 000 rows$/);
  await shot(page, "sandbox-appending");
  await bar.getByRole("button", { name: "Cancel" }).click(WAIT);
  await bar.getByText("Cancelled. Nothing was changed.").waitFor(WAIT);
  assert.deepEqual(await stored(), before);
  assert.equal(plain(await page.locator('[data-meter="fragments"] dd').innerText()), "1");
  await bar.getByLabel("Rows", { exact: true }).fill("50");
  await bar.getByRole("button", { name: "Append rows" }).click();
  await bar.getByText(/50 rows appended: 1 fragment added/).waitFor(WAIT);
  assert.deepEqual(problems, []);
});

/** What the browser's own storage does to the table of a lesson is said by a file in it, which the test writes. */
const AILING = `{
  const root = () => navigator.storage.getDirectory();
  const ailment = async () => { try { return await (await (await (await root()).getFileHandle("ailment")).getFile()).text(); } catch { return ""; } };
  const create = FileSystemFileHandle.prototype.createWritable;
  let written = 0;
  FileSystemFileHandle.prototype.createWritable = async function (...args) {
    const path = (await (await root()).resolve(this)) ?? [];
    const now = path.some((part) => part.endsWith(".lance")) ? await ailment() : "";
    if (now === "full" && path.includes("data") && (written += 1) > 1) throw new DOMException("no room", "QuotaExceededError");
    if (now === "lost" && path.includes("data")) await new Promise((resolve) => setTimeout(resolve, 1000));
    if (now === "hangs" && path.includes("_versions")) { await (await root()).getFileHandle("hanging", { create: true }); await new Promise(() => {}); }
    return create.apply(this, args);
  };
  if (typeof DedicatedWorkerGlobalScope === "function" && self.name !== "engine") self.addEventListener("message", async ({ data }) => {
    if (data?.type === "build" && await ailment() === "lost") setTimeout(() => { throw new Error("the floor gave way"); });
  });
}`;

test("a compaction that meets a full browser, lost workers and a closed tab leaves the table whole, and is done later", async (t) => {
  const folder = without(t);
  const { open } = await pageOn(t, folder, siteWith(path.join(folder, "site"), AILING));
  const { page, problems } = await open("?url=sandbox:contiguous&lesson=contiguous.4");
  const compact = panel(page).getByRole("button", { name: "Compact the runs", exact: true }).and(page.locator(":enabled"));
  const failure = page.locator(".lesson .error");
  const meter = async (name) => plain(await page.locator(`[data-meter="${name}"] dd`).innerText());
  const ail = (text) => page.evaluate(async (text) => {
    const stream = await (await (await navigator.storage.getDirectory()).getFileHandle("ailment", { create: true })).createWritable();
    await stream.write(text);
    await stream.close();
  }, text);
  const dataFiles = () => page.evaluate(async () => {
    let folder = await navigator.storage.getDirectory();
    for (const name of ["whetstone-sandbox", "contiguous.lance", "data"]) folder = await folder.getDirectoryHandle(name);
    return Array.fromAsync(folder.keys());
  });
  await compact.waitFor(WAIT);
  const before = await dataFiles();
  assert.deepEqual([await meter("fragments"), before.length], ["8", 8]);
  for (const [ailment, code] of [["full", "STORE_FULL"], ["lost", "ENGINE_CRASHED"]]) {
    await ail(ailment);
    await compact.click(WAIT);
    await failure.getByText(code).waitFor(WAIT);
    assert.match(plain(await failure.innerText()), /nothing was changed/i, code);
    await compact.waitFor(WAIT);
    assert.deepEqual([await meter("fragments"), await dataFiles()], ["8", before], `${code}: what was written is removed`);
  }
  await ail("hangs");
  await compact.click(WAIT);
  await stored(page, "hanging");
  await page.reload();
  await compact.waitFor(WAIT);
  assert.equal(await page.locator(".unfinished li").getAttribute("data-fate", WAIT), "pending", "the page knows of the commit that its tab did not see the end of");
  assert.equal(await meter("fragments"), "8", "what no version names is not there");
  await ail("");
  await compact.click(WAIT);
  await isDone(page);
  assert.equal(await meter("fragments"), "2");
  assert.match(plain(await panel(page).locator(".lesson-status").innerText()), /8 fragments became 2: 3 200 rows written again, 2 segments remapped/);
  // Taken along, it is a table like any other.
  await panel(page).getByRole("button", { name: "Leave the lesson" }).click();
  const [download] = await Promise.all([page.waitForEvent("download", WAIT), page.locator(".sandbox-bar").getByRole("button", { name: "Download" }).click(WAIT)]);
  await download.saveAs(path.join(folder, "contiguous.tar"));
  execFileSync("tar", ["-xf", path.join(folder, "contiguous.tar"), "-C", folder]);
  const table = await openTable(path.join(folder, "contiguous.lance"));
  assert.deepEqual([table.rows, (await table.fragments()).map(({ id, rows }) => [id, rows])], [3200, [[8, 1600], [9, 1600]]]);
  assert.deepEqual((await table.audit("user_idx")).findings, []);
  const { lines } = await table.columnLines("id");
  assert.deepEqual(lines.trim().split("\n").map((line) => JSON.parse(line).value), Array.from({ length: 3200 }, (_, i) => i));
  assert.deepEqual(problems, []);
});
