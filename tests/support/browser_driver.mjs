// Drives one Chromium page with the package's browser build: one JSON job per line on stdin, one JSON answer per line on stdout.
// A job is { target, method, arguments, options, store, workers }; the page does what a user's page would do, with real Web Workers.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const [executablePath] = process.argv.slice(2);
const dist = fileURLToPath(new URL("../../pkg/dist/", import.meta.url));
const types = { ".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html" };

const server = createServer(async (request, response) => {
  const path = normalize(decodeURIComponent(request.url.split("?")[0]));
  if (path === "/") {
    response.writeHead(200, { "Content-Type": "text/html" }).end('<!doctype html><title>oracle</title><script type="importmap">{"imports":{"whetstone":"/browser.js"}}</script>');
    return;
  }
  try {
    const body = await readFile(join(dist, path));
    response.writeHead(200, { "Content-Type": types[extname(path)] ?? "application/octet-stream" }).end(body);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage();
const console_ = [];
let workers = 0;
page.on("console", (message) => console_.push(message.text()));
page.on("pageerror", (error) => console_.push(String(error)));
page.on("worker", () => { workers += 1; });
await page.goto(`http://127.0.0.1:${server.address().port}/`);

async function run(job) {
  workers = 0;
  const answer = await page.evaluate(async ({ target, method, arguments: given, options, store, size }) => {
    const whetstone = await import("/browser.js");
    const table = await whetstone.open(target, store ? { store } : {});
    const pool = new whetstone.WorkerPool({ size });
    try {
      return { report: await table[method](...given, { ...options, pool }), version: table.version };
    } catch (error) {
      return { error: { code: error.code ?? "NOT_TYPED", message: String(error.message ?? error), changed: error.changed } };
    } finally {
      await pool.close();
      table.close();
    }
  }, { target: job.target, method: job.method, arguments: job.arguments, options: job.options ?? {}, store: job.store, size: job.workers ?? 2 });
  return { ...answer, workers, console: console_.splice(0) };
}

/** Runs a module's text as a page would: `import` from "whetstone" is resolved by the page's import map. */
async function script(job) {
  workers = 0;
  const error = await page.evaluate(async (code) => {
    const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
    try {
      await import(url);
      return null;
    } catch (error) {
      return { code: error.code ?? "NOT_TYPED", message: String(error.message ?? error) };
    }
  }, job.code);
  return { ...(error ? { error } : {}), workers, console: console_.splice(0) };
}

const jobs = { run, script, close: async () => null };
process.stdout.write(`${JSON.stringify({ ready: true })}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  let answer;
  try {
    answer = await jobs[job.kind ?? "run"](job);
  } catch (error) {
    answer = { error: { code: "DRIVER", message: String(error.stack ?? error) }, console: console_.splice(0) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
  if (job.kind === "close") break;
}
await browser.close();
process.exit(0); // stdin stays open as long as the test runs
