// Compacting on the page, in a real Chromium, on tables written by Lance and served over HTTP: preview, choices, workers, report; what is
// refused, cancelled, overtaken, or ended with its tab.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { open as openTable } from "../../pkg/dist/node.js";
import { axe, LOOKS, wider } from "../support/page_axe.mjs";
import { pageOn } from "../support/page_browser.mjs";
import { copyTable, copyTagged, scratch } from "./support.mjs";

const WAIT = { timeout: 60_000 };
const plain = (text) => text.replace(/[\u202f\u00a0]/g, " ").trim();
const files = (folder, ...part) => readdirSync(path.join(folder, ...part), { recursive: true }).filter((name) => /\.\w+$/.test(name)).sort();
const manifests = (folder, name) => files(folder, `${name}.lance`, "_versions").filter((file) => file.endsWith(".manifest")).length;

/** The button of the plan for these rows per fragment, once it can be pressed. */
async function planned(page, rows, label) {
  const dialog = page.locator("dialog");
  if (rows !== null) await dialog.getByLabel("Rows per fragment").fill(String(rows), WAIT);
  const button = dialog.getByRole("button", { name: label, exact: true }).and(page.locator(":enabled"));
  await button.waitFor(WAIT);
  return button;
}

/** What the package plans, in the words of the button. */
async function wordsOf(folder, name, options) {
  const plan = await (await openTable(path.join(folder, `${name}.lance`))).planCompaction(options);
  const [sources, outputs] = [plan.tasks.flatMap((task) => task.fragments), plan.tasks.flatMap((task) => task.outputs)];
  return { plan, sources, outputs, label: `Rewrite ${sources.length} ${sources.length === 1 ? "fragment" : "fragments"} into ${outputs.length}` };
}

test("a compaction from the health line to its report, with keys alone", async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder);
  const { open, shot, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("fragments_200")}`);
  let workers = 0;
  page.on("worker", () => { workers += 1; });
  const line = page.locator(".health-line", { hasText: "a compaction would rewrite" });
  await line.getByRole("button", { name: "Compact…" }).press("Enter", WAIT);
  const dialog = page.locator("dialog");
  const usual = await wordsOf(folder, "fragments_200", {});
  await planned(page, null, usual.label);
  assert.match(plain(await line.innerText()), new RegExp(`rewrite ${usual.sources.length} fragments in ${usual.plan.tasks.length} groups`), "the health line says what the plan does");
  assert.equal(new URL(page.url()).searchParams.get("compact"), "table");
  assert.match(plain(await dialog.locator(".choices").innerText()), /1 048 576, Lance’s default/);

  // What is no number is not planned; then 60 rows, typed.
  await page.keyboard.press("Tab");
  for (let more = 0; more < 6 && !(await page.evaluate(() => document.activeElement.matches(".choices input[type=text]"))); more += 1) await page.keyboard.press("Tab");
  await page.keyboard.type("6o");
  assert.ok(await dialog.getByRole("button", { name: "Nothing planned" }).isDisabled());
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-invalid")), "true");
  await page.keyboard.press("Backspace");
  await page.keyboard.type("0");
  const want = await wordsOf(folder, "fragments_200", { target_rows_per_fragment: 60 });
  assert.ok(want.plan.tasks.length > 2);
  await planned(page, null, want.label);
  const before = await dialog.locator(".runs tbody tr").count();
  assert.equal(before, want.plan.tasks.length);
  assert.equal(await dialog.locator(".fates li").count(), want.plan.effects.length, "an effect for every segment");
  assert.deepEqual(await dialog.locator(".fate").allInnerTexts(), want.plan.effects.map((effect) => effect.fate));
  assert.match(plain(await dialog.locator(".plan-sum").innerText()), new RegExp(`^200 fragments become ${want.plan.fragments_after}$`));
  await shot(page, "page-compact-plan");
  for (let more = 0; more < 24 && !(await page.evaluate((label) => document.activeElement.textContent === label, (await dialog.locator(".dialog-foot .primary").textContent()))); more += 1) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".report", WAIT);
  const report = plain(await dialog.innerText());
  assert.match(report, new RegExp(`${want.sources.length} fragments became ${want.outputs.length}\\. Version 4 → 6\\.`));
  assert.match(report, /stay for the versions before/);
  assert.match(await page.locator(".command code").innerText(), /^whetstone compact http\S+fragments_200\.lance --param target_rows_per_fragment=60$/);
  assert.deepEqual(await axe(page), []);
  await shot(page, "page-compact-report");
  await page.keyboard.press("Escape");
  await page.waitForFunction((count) => document.querySelector('[data-meter="fragments"] dd').textContent === String(count), want.plan.fragments_after, WAIT);
  const after = await openTable(path.join(folder, "fragments_200.lance"));
  assert.deepEqual([after.version, after.rows, (await after.fragments()).length], [6, 1011, want.plan.fragments_after]);
  assert.ok(workers >= 2, "fragments are written in workers");
  assert.deepEqual(problems, []);
});

test("a compaction is reached from the map and from what if, with the rows chosen there", async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder);
  const { open, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("fragments_200")}`);
  const dialog = page.locator("dialog");
  await page.locator(".layout .panel-head").getByRole("button", { name: "Compact…" }).click(WAIT);
  await planned(page, null, (await wordsOf(folder, "fragments_200", {})).label);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "what if", exact: true }).click();
  const slider = page.getByRole("slider", { name: /Rows a compaction aims at/ });
  await slider.focus(WAIT);
  await page.keyboard.press("Home");
  await page.locator(".whatif").getByRole("button", { name: "Compact…" }).click();
  await planned(page, null, (await wordsOf(folder, "fragments_200", { target_rows_per_fragment: 100 })).label);
  assert.equal(await dialog.getByLabel("Rows per fragment").inputValue(), "100");
  assert.equal(new URL(page.url()).searchParams.get("compact"), "100");
  await dialog.getByText("Limits of this run").click();
  await dialog.getByLabel("Fragments to leave out").fill("0-198");
  await dialog.getByRole("button", { name: "Nothing to compact" }).waitFor(WAIT);
  assert.match(plain(await dialog.locator(".stays").innerText()), /199\s+excluded/);
  await page.keyboard.press("Escape");
  assert.equal(manifests(folder, "fragments_200"), 4, "looking writes nothing");
  assert.deepEqual(problems, []);
});

test("every state of the dialog, wide and on a phone, light and dark: no finding, nothing wider than the screen; a cancel answers at once", async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder);
  copyTable(t, "nested_fields", folder);
  const { open, shot, stand, table } = await pageOn(t, folder);
  // While there is a gate, what is read of the fragments waits in front of it: the run cannot end before it is cancelled.
  let gate = null;
  stand((request) => gate !== null && request.method === "GET" && request.url.includes("/data/"), (request, response, listener) => void gate.then(() => listener(request, response)));
  const want = await wordsOf(folder, "fragments_200", { target_rows_per_fragment: 300 });
  const before = files(folder, "fragments_200.lance");
  for (const look of LOOKS) {
    const { page, problems } = await open(`?url=${table("fragments_200")}&compact=300`, look);
    const dialog = page.locator("dialog");
    const check = async (state, on = page) => {
      assert.deepEqual(await axe(on), [], `${state} ${look.name}`);
      assert.equal(await wider(on), 0, `${state} ${look.name}: nothing is wider than the screen`);
      await shot(on, `compact-${state}-${look.name}`);
    };
    const run = await planned(page, null, want.label);
    await dialog.getByText("Limits of this run").click();
    await check("plan");

    // Cancelled in the middle, and nothing is left of it.
    let release;
    gate = new Promise((resolve) => { release = resolve; });
    await run.click();
    await page.waitForSelector(".run-workers b", WAIT);
    await check("running");
    await dialog.getByRole("button", { name: "Cancel" }).click(WAIT);
    // Answered while its reads are still held back: nobody waits for them.
    await page.waitForFunction(() => /Cancelled/.test(document.querySelector("dialog").textContent), undefined, WAIT);
    release();
    gate = null;
    await page.waitForSelector(".plan > .note", WAIT);
    // On a busy machine the note may come before everything is cleared away, and says then what is still there.
    assert.match(plain(await page.locator(".plan > .note").innerText()), /^Cancelled\. Fragments and indexes are as they were\.$|nothing was committed/);
    for (let more = 0; more < 100 && files(folder, "fragments_200.lance").length !== before.length; more += 1) await new Promise((resolve) => setTimeout(resolve, 100));
    assert.deepEqual(files(folder, "fragments_200.lance"), before, "no version was written, and what was uploaded was removed");

    // A table that this build does not write: said before anything is done.
    const { page: refused } = await open(`?url=${table("nested_fields")}&compact=table`, look);
    await refused.waitForSelector(".plan-body .note", WAIT);
    assert.ok(await refused.getByRole("button", { name: "Cannot be run here" }).isDisabled());
    assert.match(plain(await refused.locator(".plan .note").first().innerText()), /this build does not run the plan: column meta is of type struct/);
    await check("refused", refused);
    assert.deepEqual(problems, []);
    await page.context().close();
    await refused.context().close();
  }
});

for (const late of [false, true]) test(`somebody compacts first${late ? ", after ids were reserved" : ""}: the run is refused, nothing of it is left, and the next plan is of what is there`, async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder);
  const { open, shot, stand, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("fragments_200")}&compact=60`);
  const want = await wordsOf(folder, "fragments_200", { target_rows_per_fragment: 60 });
  const other = await openTable(path.join(folder, "fragments_200.lance"));
  let theirs = null;
  // The other writer is done before the first of our files is, or before our second manifest.
  let sent = 0;
  const held = late ? (request) => request.url.includes("/_versions/") && (sent += 1) === 2 : (request) => request.url.includes("/data/");
  stand((request) => request.method === "PUT" && held(request), (request, response, listener) => {
    theirs ??= other.compact({ target_rows_per_fragment: 500 });
    theirs.then(() => listener(request, response));
  });
  await (await planned(page, null, want.label)).click();
  await page.waitForSelector("dialog .error", WAIT);
  const { version, fragments_removed: gone } = await theirs;
  assert.ok(gone.length > 0);
  assert.match(plain(await page.locator("dialog .error").innerText()), /STALE_PLAN/);
  assert.match(plain(await page.locator("dialog .error").innerText()), late ? /Fragments and indexes are as they were\. Version 5 was written for it, and only reserves fragment ids\./ : /Nothing was changed\./);
  assert.deepEqual(await axe(page), []);
  await shot(page, `page-compact-overtaken${late ? "-late" : ""}`);
  const fresh = await openTable(path.join(folder, "fragments_200.lance"));
  assert.equal(fresh.version, version);
  const named = new Set((await fresh.fragments()).flatMap((fragment) => fragment.data_files.map((file) => file.path)));
  const old = new Set((await (await fresh.at(4)).fragments()).flatMap((fragment) => fragment.data_files.map((file) => file.path)));
  assert.deepEqual(files(folder, "fragments_200.lance", "data").filter((file) => !named.has(file) && !old.has(file)), [], "no file of the refused run is left");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.waitForSelector(".plan-body .quiet", WAIT);
  assert.match(plain(await page.locator(".plan-body").innerText()), new RegExp(`(Planned on|of) version ${version}\\b`));
  assert.deepEqual(problems, []);
});

test("a tagged reuse history: an eager compaction is refused by name, a deferred one is planned, and what this build cannot run says so", async (t) => {
  const folder = scratch(t);
  const target = copyTagged("partially_drained", folder);
  const { open, shot, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("partially_drained")}&compact=table`);
  await page.waitForSelector(".plan .error", WAIT);
  assert.match(plain(await page.locator(".plan .error").innerText()), /UNSUPPORTED_FEATURE/);
  assert.match(plain(await page.locator(".plan .error").innerText()), /only with defer_index_remap/);
  assert.match(plain(await page.locator(".plan .error h2").innerText()), /Only with the indexes left alone/);
  assert.match(plain(await page.locator(".health").innerText()), /Layout: a compaction would rewrite 4 fragments in 2 groups/);
  await shot(page, "page-compact-tagged");
  await page.locator("dialog label").filter({ hasText: "Leave the indexes alone" }).click();
  const handle = await openTable(target);
  const plan = await handle.planCompaction({ defer_index_remap: true });
  await page.waitForSelector(".plan-body .fate", WAIT);
  const fates = (await page.locator(".plan-body .fate").allInnerTexts()).sort();
  assert.deepEqual(fates, plan.effects.map((effect) => effect.fate).sort());
  const stopped = plan.warnings.find((warning) => warning.rule === "cannot_run");
  const primary = page.locator(".dialog-foot .primary");
  if (stopped) {
    assert.equal(plain(await page.locator(".plan-body .note").first().innerText()), plain(stopped.evidence));
    assert.equal(plain(await primary.innerText()), "Cannot be run here");
    assert.ok(await primary.isDisabled());
  } else {
    await primary.and(page.locator(":enabled")).click(WAIT);
    await page.waitForSelector(".report", WAIT);
    assert.equal((await openTable(target)).version, handle.version + 2);
  }
  assert.deepEqual(problems, []);
});

test("a deferred compaction leaves the segments alone, and its history is there to be looked at and trimmed", async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder);
  const { open, shot, table } = await pageOn(t, folder);
  const { page, problems } = await open(`?url=${table("fragments_200")}&view=history&compact=table`);
  const dialog = page.locator("dialog");
  await dialog.getByText("Leave the indexes alone").click(WAIT);
  await page.waitForFunction(() => document.querySelector(".plan-body:not(.is-stale)")?.textContent.includes("DEFERRED"), null, WAIT);
  await shot(page, "page-compact-deferred");
  await dialog.locator(".primary:enabled").filter({ hasText: "Rewrite 200 fragments into 3" }).click(WAIT);
  await page.waitForSelector(".report", WAIT);
  assert.match(await page.locator(".command code").innerText(), / --defer$/);
  assert.match(plain(await page.locator(".report").innerText()), /Segments: 2 deferred, 1 kept/);
  await dialog.getByRole("button", { name: "Done" }).click();
  await page.waitForSelector(".history-graph", WAIT);
  const after = await openTable(path.join(folder, "fragments_200.lance"));
  const [plan, { transitions }] = [await after.planTrim(), await after.history()];
  assert.ok(transitions.length > 0);
  await page.locator(".history").getByRole("button", { name: "Trim…" }).click();
  const gone = plan.records.filter((record) => !record.kept).length;
  await dialog.getByRole("button", { name: gone === 0 ? "Nothing to trim" : `Remove ${gone} record${gone === 1 ? "" : "s"}` }).waitFor(WAIT);
  assert.deepEqual(problems, []);
});

test("a tab that ends while a compaction commits: the next one says how far it got", async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder);
  const { open, shot, stand, table } = await pageOn(t, folder);
  let arrived;
  let manifest = 0;
  // Which of the two manifests is kept from ending, and whether it is written.
  let hold = { at: 1, lands: false };
  stand((request) => request.method === "PUT" && request.url.includes("/_versions/"), (request, response, listener) => {
    manifest += 1;
    if (manifest < hold.at) {
      listener(request, response);
      return;
    }
    if (hold.lands) {
      response.end = () => response; // the manifest is written, its answer never sent
      listener(request, response);
    }
    setTimeout(arrived, 500);
  });
  const { page } = await open();
  const begin = async (held) => {
    hold = held;
    manifest = 0;
    const waiting = new Promise((resolve) => { arrived = resolve; });
    const tab = await page.context().newPage();
    await tab.goto(`${page.url()}?url=${table("fragments_200")}&compact=300`);
    await tab.locator(".dialog-foot .primary:enabled").filter({ hasText: "Rewrite" }).click(WAIT);
    await waiting;
    await tab.close();
  };
  const said = async (fate) => {
    const tab = await page.context().newPage();
    await tab.goto(`${page.url()}?url=${table("fragments_200")}`);
    const notes = tab.locator(".unfinished li");
    await notes.first().waitFor(WAIT);
    assert.equal(await notes.count(), 1, "one compaction, one line");
    assert.equal(await notes.getAttribute("data-fate"), fate);
    const text = plain(await notes.innerText());
    await shot(tab, `page-compact-${fate}`);
    return { text, dismiss: async () => { await notes.getByRole("button", { name: "Dismiss" }).click(); await tab.close(); } };
  };
  // The ids are reserved, and then the tab is gone.
  await begin({ at: 1, lands: true });
  const begun = await said("begun");
  assert.match(begun.text, /^A compaction was being committed when its tab was closed\. It did not get to its end: version 5 only reserved fragment ids/);
  await begun.dismiss();
  // The exchange is on its way, and arrives.
  await begin({ at: 2, lands: true });
  const landed = await said("landed");
  assert.match(landed.text, /^A compaction was being committed when its tab was closed\. It landed: version 7 is its work/);
  await landed.dismiss();
  assert.equal((await openTable(path.join(folder, "fragments_200.lance"))).rows, 1011);
});
