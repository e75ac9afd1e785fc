// Compacts a table through the dialog of the page, in a real Chromium: node page_compact.mjs FOLDER NAME ROWS -> one JSON document.
import { pageOn } from "./page_browser.mjs";

const [folder, name, rows] = process.argv.slice(2);
const WAIT = { timeout: 120_000 };
const ends = [];
const { open, table } = await pageOn({ after: (end) => ends.push(end) }, folder);
const { page, problems } = await open(`?url=${table(name)}&compact=table`);
const dialog = page.locator("dialog");
await dialog.getByLabel("Rows per fragment").fill(rows, WAIT);
const run = dialog.getByRole("button", { name: /^Rewrite \d+ fragments? into \d+$/ }).and(page.locator(":enabled"));
await run.waitFor(WAIT);
await page.waitForFunction((chosen) => document.querySelector(".plan-body:not(.is-stale)") && document.querySelector(".choices input").value === chosen, rows, WAIT);
const button = await run.innerText();
await run.click();
await page.waitForSelector(".report, .error", WAIT);
const text = (await dialog.innerText()).replace(/[\u202f\u00a0]/g, " ");
for (const end of ends.reverse()) await end();
process.stdout.write(`${JSON.stringify({ button: button.replace(/[\u202f\u00a0]/g, " "), text, problems })}\n`);
