// Opens a table that means harm in a real Chromium and uses the page on it: node page_hostile.mjs FOLDER NAME -> one JSON document.
import { pageOn } from "./page_browser.mjs";

const [folder, name] = process.argv.slice(2);
const ends = [];
const { open, shot, table } = await pageOn({ after: (end) => ends.push(end) }, folder);
const { page, problems } = await open(`?url=${table(name)}`);
const dialogs = [];
page.on("dialog", (dialog) => {
  dialogs.push(dialog.message());
  void dialog.dismiss();
});
const asked = [];
page.on("request", (request) => asked.push(request.url()));
await page.waitForSelector(".map canvas", { timeout: 120_000 });
const search = page.getByRole("searchbox");
await search.fill("index_777");
await search.press("Enter");
await page.waitForFunction(() => /^index:.*index_777/.test(new URLSearchParams(location.search).get("sel") ?? ""), null, { timeout: 60_000 });
await page.waitForFunction(() => /index_777/.test(document.querySelector(".details")?.textContent ?? ""), null, { timeout: 60_000 });
const details = await page.locator(".details h3").innerText();
await page.locator(".details").getByRole("button", { name: "probe", exact: true }).click({ timeout: 60_000 });
await shot(page, "page-hostile");
const found = await page.evaluate(() => ({
  indexes: document.querySelectorAll(".index-item").length,
  scripts: [...document.scripts].filter((script) => !script.src).length,
  images: document.images.length,
  marked: document.querySelectorAll(".index-name b, .index-name img, .details b img, .health img").length,
  ran: globalThis.harmed ?? null,
  wider: Math.max(0, document.documentElement.scrollWidth - innerWidth),
  title: document.title,
}));
const elsewhere = asked.filter((url) => !url.startsWith("http://127.0.0.1") && !url.startsWith("blob:"));
for (const end of ends.reverse()) await end();
process.stdout.write(`${JSON.stringify({ ...found, details, dialogs, elsewhere, problems })}\n`);
