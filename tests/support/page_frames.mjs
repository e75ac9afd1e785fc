// Pans and zooms the layout map of a large table in a real Chromium and prints what a frame costs: script, layout and all of the main thread.
// node page_frames.mjs FOLDER NAME -> one JSON document
import { pageOn } from "./page_browser.mjs";

const [folder, name] = process.argv.slice(2);
const ends = [];
const { open, shot, table } = await pageOn({ after: (end) => ends.push(end) }, folder);
const { page, problems } = await open(`?url=${table(name)}`);
const begun = Date.now();
await page.waitForSelector(".map canvas", { timeout: 120_000 });
await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const opened_ms = Date.now() - begun;
await shot(page, "page-large");
const cdp = await page.context().newCDPSession(page);
await cdp.send("Performance.enable");
const metrics = async () => Object.fromEntries((await cdp.send("Performance.getMetrics")).metrics.map(({ name: metric, value }) => [metric, value]));

/** Moves once per frame and counts the frames and how long the slowest of them took to be painted. */
async function measure(moves) {
  const before = await metrics();
  const { frames, script } = await page.evaluate(async ({ moves: list }) => {
    const canvas = document.querySelector(".map-canvas canvas");
    const box = canvas.getBoundingClientRect();
    const script = [];
    let frames = 0;
    const next = () => new Promise((done) => requestAnimationFrame(done));
    for (const [kind, amount] of list) {
      const start = performance.now();
      canvas.dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, clientX: box.left + box.width * 0.4, clientY: box.top + 80, ...(kind === "pan" ? { deltaX: amount } : { deltaY: amount }) }));
      await next(); // the map paints in the frame that was asked for
      script.push(performance.now() - start);
      frames += 1;
    }
    return { frames, script };
  }, { moves });
  const after = await metrics();
  const per = (metric) => Math.round(((after[metric] - before[metric]) * 1e6) / frames) / 1000;
  const sorted = [...script].sort((a, b) => a - b);
  return { frames, script_ms: per("ScriptDuration"), layout_ms: per("LayoutDuration"), task_ms: per("TaskDuration"), frame_p95_ms: Math.round(sorted[Math.floor(frames * 0.95)] * 100) / 100 };
}

const repeat = (n, move) => Array.from({ length: n }, (_, i) => move(i));
const result = {
  fragments: Number((await page.locator('[data-meter="fragments"] dd').innerText()).replace(/\D/g, "")),
  lanes: await page.locator(".map-label-index").count(),
  opened_ms,
  zoom_from_all: await measure(repeat(60, () => ["zoom", -40])),
  pan_near: await measure(repeat(120, (i) => ["pan", i % 80 < 40 ? 60 : -60])),
  zoom_out: await measure(repeat(60, () => ["zoom", 40])),
  pan_middle: await (async () => {
    await measure(repeat(12, () => ["zoom", -40]));
    return measure(repeat(120, (i) => ["pan", i % 80 < 40 ? 60 : -60]));
  })(),
  window: new URL(page.url()).searchParams.get("z"),
  problems,
};
await page.waitForTimeout(300);
result.window = new URL(page.url()).searchParams.get("z");
for (const end of ends.reverse()) await end();
process.stdout.write(`${JSON.stringify(result)}\n`);
