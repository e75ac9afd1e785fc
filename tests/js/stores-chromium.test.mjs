// The page's own storage and the handle of a folder, in a real Chromium: the same suite, and a refresh with workers.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import test, { after, before } from "node:test";
import { chromium } from "playwright-core";
import { serve } from "whetstone/serve";
import { copyTable, expected, PACKAGE, scratch } from "./support.mjs";

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
let browser;

before(async () => {
  assert.ok(CHROMIUM, "Chromium is needed: scripts/setup.sh chromium installs it");
  browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
});
after(() => browser?.close());

/** A page with storage of its own, which loads the package. */
async function visit(t) {
  const site = scratch(t);
  writeFileSync(path.join(site, "index.html"), "<!doctype html><title>test</title><link rel=icon href=data:,>");
  symlinkSync(path.join(PACKAGE, "dist"), path.join(site, "dist"));
  const pages = await serve({ root: scratch(t), page: site });
  t.after(() => pages.close());
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  await page.goto(pages.url);
  return page;
}

for (const kind of ["opfs", "directory"]) {
  test(`${kind} conforms`, async (t) => {
    const page = await visit(t);
    const { report, left } = await page.evaluate(async (kind) => {
      const { conformance, opfsStore, directoryStore } = await import("/dist/browser.js");
      const root = await navigator.storage.getDirectory();
      const folder = await root.getDirectoryHandle("t.lance", { create: true });
      const store = kind === "opfs" ? opfsStore("t.lance") : directoryStore(folder);
      const report = await conformance(store);
      const left = [];
      for await (const [name] of folder.entries()) left.push(name);
      return { report, left };
    }, kind);
    assert.deepEqual(report.checks.filter((check) => check.status !== "ok"), [], JSON.stringify(report.checks));
    assert.equal(report.commits, "safe", report.verdict);
    assert.deepEqual(left, []);
  });
}

test("two pages of one origin race for the same objects of its storage", async (t) => {
  const first = await visit(t);
  const second = await first.context().newPage();
  await second.goto(first.url());
  const race = (page, me) => page.evaluate(async (me) => {
    const { opfsStore, directoryStore } = await import("/dist/browser.js");
    // Reached from folders of different depth: the lock must not depend on that.
    const root = await navigator.storage.getDirectory();
    await root.getDirectoryHandle("deep", { create: true });
    const store = me === 0 ? opfsStore("deep") : directoryStore(await root.getDirectoryHandle("deep"));
    const won = [];
    for (let i = 0; i < 30; i += 1) {
      const answer = await store.callbacks.put(`folder/object-${i}`, [new TextEncoder().encode(`page ${me}`)], { create: true });
      if (answer === "written") won.push(i);
    }
    return won;
  }, me);
  const [a, b] = await Promise.all([race(first, 0), race(second, 1)]);
  assert.deepEqual([...a, ...b].sort((x, y) => x - y), Array.from({ length: 30 }, (_, i) => i), `${a} / ${b}`);
  const content = await first.evaluate(async () => {
    const folder = await (await (await navigator.storage.getDirectory()).getDirectoryHandle("deep")).getDirectoryHandle("folder");
    const found = {};
    for await (const [name, handle] of folder.entries()) found[name] = await (await handle.getFile()).text();
    return found;
  });
  assert.deepEqual(Object.keys(content).sort(), Array.from({ length: 30 }, (_, i) => `object-${i}`).sort(), "no temporary file is left");
  for (const i of a) assert.equal(content[`object-${i}`], "page 0");
  for (const i of b) assert.equal(content[`object-${i}`], "page 1");
});

test("a table in the page's storage is refreshed with workers", async (t) => {
  const page = await visit(t);
  const folder = copyTable(t, "fragments_200");
  const files = readdirSync(folder, { recursive: true }).filter((name) => statSync(path.join(folder, name)).isFile())
    .map((name) => [name, readFileSync(path.join(folder, name)).toString("base64")]);
  const seen = await page.evaluate(async (files) => {
    const { open, opfsStore, WorkerPool } = await import("/dist/browser.js");
    const root = await (await navigator.storage.getDirectory()).getDirectoryHandle("copy.lance", { create: true });
    for (const [name, data] of files) {
      const parts = name.split("/");
      const last = parts.pop();
      let folder = root;
      for (const part of parts) folder = await folder.getDirectoryHandle(part, { create: true });
      const stream = await (await folder.getFileHandle(last, { create: true })).createWritable();
      await stream.write(Uint8Array.from(atob(data), (c) => c.charCodeAt(0)));
      await stream.close();
    }
    const table = await open(opfsStore("copy.lance"));
    const pool = new WorkerPool({ size: 2 });
    const report = await table.refresh("k_idx", { segments: 2, pool });
    await pool.close();
    return { report, version: table.version, unindexed: (await table.index("k_idx")).unindexed_fragments };
  }, files);
  assert.equal(seen.version, expected("fragments_200").version + 1);
  assert.equal(seen.report.segments_added, 2);
  assert.deepEqual(seen.unindexed, []);
});
