// A Chromium with the built page, served by `whetstone serve` over a writable scratch folder.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { chromium } from "playwright-core";
import { serve } from "../../pkg/dist/serve.js";

const ROOT = new URL("../../", import.meta.url).pathname;
const PAGE = path.join(ROOT, "www", "dist");
export const ARTIFACTS = path.join(ROOT, "tests", "artifacts");

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

function chromiumPath() {
  const found = process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((p) => existsSync(p));
  if (!found) throw new Error("no Chromium on this machine: run scripts/setup.sh chromium");
  return found;
}

/** A copy of the page in which every script, also of workers, begins with `code`: to take something away from the browser. */
export function siteWith(folder, code) {
  cpSync(PAGE, folder, { recursive: true });
  for (const file of readdirSync(folder).filter((one) => one.endsWith(".js"))) {
    const at = path.join(folder, file);
    writeFileSync(at, `${code}\n${readFileSync(at, "utf8")}`);
  }
  return folder;
}

/** Waits until a file is in the browser's own storage. (A function of `waitForFunction` that is async is true at once.) */
export async function stored(page, name) {
  for (let more = 0; more < 600; more += 1) {
    if (await page.evaluate(async (name) => (await navigator.storage.getDirectory()).getFileHandle(name).then(() => true, () => false), name)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${name} is not in the browser's own storage after a minute`);
}

/** Starts the server on a folder and a browser; both end with the test. */
export async function pageOn(t, folder, built = PAGE) {
  if (!existsSync(path.join(built, "index.html"))) throw new Error("the page is not built: run make build");
  mkdirSync(ARTIFACTS, { recursive: true });
  const server = await serve({ root: folder, page: built, writable: true });
  t.after(() => server.close());
  const browser = await chromium.launch({ executablePath: chromiumPath(), args: FLAGS });
  t.after(() => browser.close());
  /** Opens the page at a query (`offline`: with its service worker); every console error and failed script is kept in `problems`. */
  const open = async (query = "", { width = 1440, height = 900, dark = false, offline = false } = {}) => {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", reducedMotion: "reduce", serviceWorkers: offline ? "allow" : "block" });
    const page = await context.newPage();
    const problems = [];
    page.on("console", (message) => {
      if (message.type() === "error") problems.push(message.text());
    });
    page.on("pageerror", (error) => problems.push(String(error)));
    await page.goto(server.url + query);
    return { page, problems };
  };
  const shot = (page, name) => page.screenshot({ path: path.join(ARTIFACTS, `${name}.png`) });
  /** Makes answers for matching paths late. */
  const delay = (pattern, ms) => {
    const [listener] = server.server.listeners("request");
    server.server.removeAllListeners("request");
    server.server.on("request", (request, response) => {
      if (pattern.test(request.url)) setTimeout(() => listener(request, response), ms);
      else listener(request, response);
    });
  };
  /** Requests that match are answered by `stand` instead, which may hand them on. */
  const stand = (matches, stand) => {
    const [listener] = server.server.listeners("request");
    server.server.removeAllListeners("request");
    server.server.on("request", (request, response) => {
      if (matches(request)) stand(request, response, listener);
      else listener(request, response);
    });
  };
  return { browser, server, open, shot, delay, stand, table: (name) => `${server.tables}${name}.lance` };
}
