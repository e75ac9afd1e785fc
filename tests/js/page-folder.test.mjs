// Tables in folders of this machine, and the page without a network: in a real Chromium, on a handle of its own storage, which is the
// same interface as that of a folder somebody picked.
import assert from "node:assert/strict";
import { cpSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { pageOn } from "../support/page_browser.mjs";
import { copyTable, ROOT, scratch } from "./support.mjs";

const WAIT = { timeout: 60_000 };
const plain = (text) => text.replace(/[\u202f\u00a0]/g, " ").trim();

function filesOf(folder, below = "") {
  return readdirSync(path.join(folder, below)).flatMap((name) => {
    const file = below === "" ? name : `${below}/${name}`;
    return statSync(path.join(folder, file)).isDirectory() ? filesOf(folder, file) : [file];
  });
}

/** Puts a served table into the storage of the page's origin. */
function handOver(page, table, files, into) {
  return page.evaluate(async ([base, names, target]) => {
    for (const name of names) {
      const parts = [...target.split("/"), ...name.split("/")];
      const last = parts.pop();
      let folder = await navigator.storage.getDirectory();
      for (const part of parts) folder = await folder.getDirectoryHandle(part, { create: true });
      const stream = await (await folder.getFileHandle(last, { create: true })).createWritable();
      await stream.write(await (await fetch(`${base}/${name}`)).arrayBuffer());
      await stream.close();
    }
  }, [table, files, into]);
}

const versionsIn = (page, folder) => page.evaluate(async (target) => {
  let at = await navigator.storage.getDirectory();
  for (const part of [...target.split("/"), "_versions"]) at = await at.getDirectoryHandle(part);
  let found = 0;
  for await (const name of at.keys()) found += Number(name.endsWith(".manifest"));
  return found;
}, folder);

test("a folder is opened, written in place, and opened again without a network", async (t) => {
  const folder = scratch(t);
  const source = copyTable(t, "commit_rules", folder);
  mkdirSync(path.join(folder, "samples"));
  writeFileSync(path.join(folder, "samples", "index.json"), "[]");
  const { open, shot, server, table } = await pageOn(t, folder);
  const { page, problems } = await open("", { offline: true });
  const files = filesOf(source);
  await handOver(page, table("commit_rules"), files, "handed/one.lance");
  await handOver(page, table("commit_rules"), files, "handed/two.lance");
  // What a person would pick; and a browser that asks again another day.
  await page.context().addInitScript(() => {
    window.showDirectoryPicker = async () => (await navigator.storage.getDirectory()).getDirectoryHandle("handed");
    if (localStorage.getItem("ask") === null) return;
    let given = "prompt";
    FileSystemHandle.prototype.queryPermission = async () => given;
    FileSystemHandle.prototype.requestPermission = async () => { given = "granted"; return given; };
  });
  await page.reload();
  await page.getByRole("button", { name: "Open a folder of this machine…" }).click(WAIT);
  await page.waitForSelector(".open-picked .link", WAIT);
  assert.deepEqual((await page.locator(".open-picked .link").allInnerTexts()).map(plain), ["one.lance", "two.lance"]);
  await shot(page, "page-folder");
  await page.getByRole("button", { name: "two.lance" }).click();
  await page.waitForSelector(".map canvas", WAIT);
  assert.match(page.url(), /\?url=folder:\d+\/two\.lance$/);
  const before = await versionsIn(page, "handed/two.lance");
  await page.getByRole("button", { name: "Refresh…" }).first().click(WAIT);
  await page.locator("dialog").getByRole("button", { name: /^Index \d+ fragments? in 1 segment$/ }).click(WAIT);
  await page.waitForSelector(".report", WAIT);
  assert.match(await page.locator(".command code").innerText(), /^whetstone refresh \.\/two\.lance /);
  assert.equal(await versionsIn(page, "handed/two.lance"), before + 1);
  assert.equal(await versionsIn(page, "handed/one.lance"), before, "the other table is as it was");
  await page.locator("dialog").getByRole("button", { name: "Done" }).click();

  // The network goes: the page, its engine and the folder stay.
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null, null, WAIT);
  const address = page.url();
  await server.close();
  await page.evaluate(() => localStorage.setItem("ask", "yes"));
  await page.goto(address);
  await page.waitForSelector(".error", WAIT);
  assert.match(plain(await page.locator(".error").innerText()), /The folder is closed to this page/);
  await shot(page, "page-folder-closed");
  await page.getByRole("button", { name: "Let the page read it" }).click();
  await page.waitForSelector(".map canvas", WAIT);
  await page.locator("button.index-row").first().click();
  await page.locator(".segments").getByRole("button", { name: "Drop…" }).click();
  await page.locator("dialog").getByRole("button", { name: /^Drop / }).click(WAIT);
  await page.waitForSelector(".report", WAIT);
  assert.equal(await versionsIn(page, "handed/two.lance"), before + 2);
  const kept = await page.evaluate(async () => {
    const urls = [];
    for (const name of await caches.keys()) urls.push(...(await (await caches.open(name)).keys()).map((request) => new URL(request.url).pathname));
    return urls;
  });
  assert.ok(kept.some((url) => url.endsWith(".wasm")) && kept.includes("/index.html"), kept.join(" "));
  assert.ok(kept.every((url) => !url.startsWith("/tables/")), `no byte of a table is kept: ${kept.join(" ")}`);
  assert.deepEqual(problems, []);
});

test("a new build is used at the next load, and is what is there when the network goes", async (t) => {
  const folder = scratch(t);
  const built = path.join(scratch(t), "dist");
  cpSync(path.join(ROOT, "www", "dist"), built, { recursive: true });
  const { open, server } = await pageOn(t, folder, built);
  const { page } = await open("", { offline: true });
  await page.evaluate(() => navigator.serviceWorker.ready);
  const [old] = await page.evaluate(() => caches.keys());
  const swap = (file, change) => writeFileSync(path.join(built, file), change(readFileSync(path.join(built, file), "utf8")));
  swap("index.html", (text) => text.replace("<title>Whetstone</title>", "<title>Whetstone</title><meta name=\"build\" content=\"next\">"));
  swap("sw.js", (text) => text.replace(/(\["index\.html",")[0-9a-f]+/, "$1feedfeedfeedfeed"));
  await page.reload();
  const build = () => page.evaluate(() => document.querySelector("meta[name=build]")?.content);
  assert.equal(await build(), "next", "the network is asked first");
  await page.evaluate(async (name) => {
    while ((await caches.keys()).includes(name)) await new Promise((resolve) => setTimeout(resolve, 50));
  }, old);
  await server.close();
  await page.reload();
  await page.waitForSelector(".open-panel", WAIT);
  assert.equal(await build(), "next");
});
