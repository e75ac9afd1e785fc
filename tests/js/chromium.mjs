// A real Chromium, and a page of one origin that loads the package while the table lies behind another.
import assert from "node:assert/strict";
import { existsSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { chromium } from "playwright-core";
import { serve } from "whetstone/serve";
import { copyTable, PACKAGE, scratch } from "./support.mjs";

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

/** Starts the browser; whoever starts it closes it. */
export async function launch() {
  assert.ok(CHROMIUM, "Chromium is needed: scripts/setup.sh chromium installs it");
  return chromium.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

/** A page that loads the package, and the table `fragments_200` behind `serve --writable`. */
export async function visit(t, browser) {
  const folder = scratch(t);
  const table = copyTable(t, "fragments_200", folder, "t");
  const site = scratch(t);
  writeFileSync(path.join(site, "index.html"), "<!doctype html><title>test</title><link rel=icon href=data:,>");
  symlinkSync(path.join(PACKAGE, "dist"), path.join(site, "dist"));
  const pages = await serve({ root: folder, page: site });
  const tables = await serve({ root: folder, writable: true });
  t.after(async () => { await pages.close(); await tables.close(); });
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  const workers = [];
  const trouble = [];
  page.on("worker", (worker) => workers.push(worker.url()));
  page.on("pageerror", (error) => trouble.push(String(error)));
  await page.goto(pages.url);
  return { page, workers, trouble, folder: table, target: `${tables.tables}t.lance` };
}
