// The documents that the page serves: references that come from the code, and guides whose links lead somewhere.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import * as whetstone from "../../pkg/dist/node.js";
import { COMMANDS } from "../../pkg/dist/cli/usage.js";
import { pictures } from "../../scripts/docs-pictures.mjs";
import { apiReference, commandReference, corsReference } from "../../scripts/docs-references.mjs";
import { launch } from "./chromium.mjs";
import { ROOT, scratch } from "./support.mjs";

/** Share of pixels that may look otherwise: letters differ a little from machine to machine. */
const OTHERWISE = 0.08;

test("the references name every command and every exported name, with what they are for", async () => {
  const commands = await commandReference();
  for (const name of Object.keys(COMMANDS)) assert.match(commands, new RegExp(`^## ${name}$`, "m"));
  const api = apiReference();
  for (const name of Object.keys(whetstone)) assert.match(api, new RegExp(`^### ${name}$`, "m"));
  for (const method of ["planRefresh", "commitSegments", "audit"]) assert.match(api, new RegExp(`\\b${method}\\(`));
  assert.doesNotMatch(api, /@internal|#engine/);
  for (const [, name, text] of api.matchAll(/^### (\w+)\n\n(.*)$/gm)) assert.ok(text.trim() !== "" && !text.startsWith("```"), `${name} says what it is for`);
});

test("what to paste for pages of other origins is there for every provider, as the check of a store says it", async () => {
  const text = await corsReference();
  for (const part of ["aws s3api put-bucket-cors", "Cloudflare R2", "gcloud storage buckets update", "az storage cors add", "add_header Access-Control-Allow-Origin", "Header always set", "whetstone serve"]) assert.ok(text.includes(part), part);
  for (const name of ["command", "api", "cors"]) assert.ok(existsSync(path.join(ROOT, "www", "dist", "docs", `${name}.html`)), name);
});

test("every document is served beside the page, and its links lead somewhere", () => {
  const served = path.join(ROOT, "www", "dist", "docs");
  for (const file of readdirSync(path.join(ROOT, "docs")).filter((one) => one.endsWith(".md"))) {
    const html = readFileSync(path.join(served, file.replace(/md$/, "html")), "utf8");
    for (const [, href] of html.matchAll(/(?:href|src)="([^"]+)"/g)) {
      if (/^https?:|^\.\.\//.test(href)) continue;
      const [target, anchor] = href.split("#");
      const page = target === "" ? html : existsSync(path.join(served, target)) ? readFileSync(path.join(served, target), "utf8") : null;
      assert.ok(page !== null, `${file}: ${href}`);
      if (anchor) assert.ok(page.includes(`id="${decodeURIComponent(anchor)}"`), `${file}: ${href}`);
    }
  }
});

test("the pictures about layouts are what the page draws", async (t) => {
  const drawn = scratch(t);
  const names = await pictures(drawn);
  const text = readFileSync(path.join(ROOT, "docs", "layout.md"), "utf8");
  const browser = await launch();
  t.after(() => browser.close());
  const page = await browser.newPage();
  for (const name of names) {
    assert.ok(text.includes(`(${name}.png)`), `docs/layout.md shows ${name}`);
    const kept = path.join(ROOT, "docs", `${name}.png`);
    assert.ok(statSync(kept).size < 120_000, `${name} is small`);
    const found = await page.evaluate(async (urls) => {
      const [a, b] = await Promise.all(urls.map(async (url) => {
        const image = new Image();
        image.src = url;
        await image.decode();
        return image;
      }));
      const [width, height] = [Math.min(a.width, b.width), Math.min(a.height, b.height)];
      const [one, other] = [a, b].map((image) => {
        const canvas = new OffscreenCanvas(width, height).getContext("2d");
        canvas.drawImage(image, 0, 0);
        return canvas.getImageData(0, 0, width, height).data;
      });
      let differ = 0;
      for (let i = 0; i < one.length; i += 4) if (Math.abs(one[i] - other[i]) + Math.abs(one[i + 1] - other[i + 1]) + Math.abs(one[i + 2] - other[i + 2]) > 60) differ += 1;
      return { apart: Math.max(Math.abs(a.width - b.width), Math.abs(a.height - b.height)), differ: differ / (width * height) };
    }, [kept, path.join(drawn, `${name}.png`)].map((file) => `data:image/png;base64,${readFileSync(file, "base64")}`));
    assert.ok(found.apart <= 24 && found.differ < OTHERWISE, `${name}: ${JSON.stringify(found)}; make them again: node scripts/docs-pictures.mjs`);
  }
});
