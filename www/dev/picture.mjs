// Makes docs/page.png, the picture in the README, from the built page and the sample tables: node www/dev/picture.mjs SAMPLES_FOLDER
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { serve } from "../../pkg/dist/serve.js";

const at = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const [samples] = process.argv.slice(2);
if (!samples) throw new Error("which folder has the samples? scripts/samples.sh prints it");
const scratch = mkdtempSync(path.join(tmpdir(), "whetstone-picture-"));
cpSync(samples, path.join(scratch, "samples"), { recursive: true });
const server = await serve({ root: scratch, page: at("../dist") });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
try {
  const page = await browser.newPage({ viewport: { width: 1200, height: 700 }, colorScheme: "light", reducedMotion: "reduce" });
  await page.goto(`${server.url}?url=${server.tables}samples/users.lance/&sel=index:user_id_idx`);
  await page.waitForSelector(".map canvas", { timeout: 60_000 });
  await page.waitForTimeout(600);
  await page.screenshot({ path: at("../../docs/page.png") });
} finally {
  await browser.close();
  await server.close();
  rmSync(scratch, { recursive: true, force: true });
}
