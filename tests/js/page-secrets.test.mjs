// Keys that are typed into the page stay in the memory of its tab: not in its storage, its address, its text, or what a reload finds.
import assert from "node:assert/strict";
import test from "node:test";
import { pageOn } from "../support/page_browser.mjs";
import { bucket } from "./s3-server.mjs";
import { copyTable, scratch } from "./support.mjs";

const WAIT = { timeout: 60_000 };
const SECRETS = ["AKIDPAGESECRET", "verysecretkey/+", "sessionsecret", "X-Amz-Signature", "Signature="];

test("keys typed into the page are kept nowhere", async (t) => {
  const folder = scratch(t);
  copyTable(t, "fragments_200", folder, "t");
  const { open, stand, server } = await pageOn(t, folder);
  const asked = [];
  const noting = (request) => { asked.push({ url: request.url, authorization: request.headers.authorization ?? "" }); return null; };
  stand((request) => request.url.startsWith("/bkt"), bucket(folder, noting));
  const { page, problems } = await open();
  const output = [];
  page.on("console", (message) => output.push(message.text()));
  await page.locator("details.keys summary").click();
  await page.getByLabel("Kind of store").selectOption("s3");
  await page.getByLabel("Endpoint").fill(new URL(server.url).origin);
  await page.getByLabel("Access key id").fill("AKIDPAGESECRET");
  await page.getByLabel("Secret access key").fill("verysecretkey/+");
  await page.getByLabel("Session token").fill("sessionsecret");
  await page.getByLabel("Address of the table").fill("s3://bkt/t.lance");
  await page.getByRole("button", { name: "Open", exact: true }).click();
  await page.waitForSelector(".map canvas", WAIT);
  assert.ok(asked.some((one) => `${one.url} ${one.authorization}`.includes("AKIDPAGESECRET")), "the keys were used");

  const seen = await page.evaluate(async () => {
    const databases = await indexedDB.databases();
    const caches_ = await caches.keys();
    return JSON.stringify({
      local: { ...localStorage }, session: { ...sessionStorage }, cookies: document.cookie, address: location.href, state: history.state,
      text: document.documentElement.outerHTML, databases, caches_, name: window.name,
    });
  });
  for (const secret of SECRETS) {
    assert.ok(!seen.includes(secret), `${secret} is kept`);
    assert.ok(!output.join("\n").includes(secret), `${secret} is logged`);
  }
  // What the address holds is all that a link shares, and a reload has no keys.
  const before = asked.length;
  await page.reload();
  await page.waitForTimeout(500);
  assert.ok(!asked.slice(before).some((one) => `${one.url} ${one.authorization}`.includes("AKIDPAGESECRET")));
  assert.deepEqual(problems.filter((problem) => SECRETS.some((secret) => problem.includes(secret))), []);
});
