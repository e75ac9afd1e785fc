// Makes the pictures of docs/layout.md from the built page, on tables that Lance wrote: node scripts/docs-pictures.mjs [FOLDER]
// A test draws them again and compares, so that they are what the page shows.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { copyTable } from "../tests/js/support.mjs";
import { pageOn } from "../tests/support/page_browser.mjs";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const WAIT = { timeout: 60_000 };

const PICTURES = {
  "layout-contiguous": {
    query: (table) => `?url=${table("fragments_200")}`,
    ready: (page) => page.waitForFunction(() => document.querySelector(".map canvas") && /a compaction would/.test(document.querySelector(".health").textContent), null, WAIT),
    part: ".layout",
  },
  "layout-interleaved": {
    query: (table) => `?url=${table("segments_interleaved")}&sel=pair:0,1`,
    ready: (page) => page.waitForSelector(".pair-why", WAIT),
    part: ".layout",
  },
  "layout-why": {
    query: (table) => `?url=${table("segments_interleaved")}&sel=pair:0,1`,
    ready: (page) => page.waitForSelector(".pair-why", WAIT),
    part: ".details",
  },
  "layout-compact": {
    query: (table) => `?url=${table("fragments_200")}&compact=200`,
    ready: async (page) => {
      await page.getByRole("button", { name: /^Rewrite/ }).and(page.locator(":enabled")).waitFor(WAIT);
      await page.evaluate(() => document.activeElement.blur());
    },
    part: "dialog",
  },
};

/** Draws all of them into a folder; answers their names. */
export async function pictures(out) {
  const ends = [];
  const t = { after: (end) => ends.push(end) };
  const folder = mkdtempSync(path.join(tmpdir(), "whetstone-pictures-"));
  mkdirSync(out, { recursive: true });
  try {
    for (const name of ["fragments_200", "segments_interleaved"]) copyTable(t, name, folder);
    const { open, table } = await pageOn(t, folder);
    for (const [name, { query, ready, part }] of Object.entries(PICTURES)) {
      const { page } = await open(query(table), { width: 1240, height: 1000 });
      await ready(page);
      await page.waitForTimeout(300); // paints follow the answers
      await page.locator(part).screenshot({ path: path.join(out, `${name}.png`), animations: "disabled" });
      await page.context().close();
    }
  } finally {
    for (const end of ends.reverse()) await end();
    rmSync(folder, { recursive: true, force: true });
  }
  return Object.keys(PICTURES);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const out = path.resolve(process.argv[2] ?? path.join(ROOT, "docs"));
  for (const name of await pictures(out)) process.stdout.write(`${path.join(out, name)}.png\n`);
}
