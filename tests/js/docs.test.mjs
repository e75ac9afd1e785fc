// The documents that the page serves: references that come from the code, and guides whose links lead somewhere.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import * as whetstone from "../../pkg/dist/node.js";
import { COMMANDS } from "../../pkg/dist/cli/usage.js";
import { apiReference, commandReference } from "../../scripts/docs-references.mjs";
import { ROOT } from "./support.mjs";

test("the references name every command and every exported name, with what they are for", async () => {
  const commands = await commandReference();
  for (const name of Object.keys(COMMANDS)) assert.match(commands, new RegExp(`^## ${name}$`, "m"));
  const api = apiReference();
  for (const name of Object.keys(whetstone)) assert.match(api, new RegExp(`^### ${name}$`, "m"));
  for (const method of ["planRefresh", "commitSegments", "audit"]) assert.match(api, new RegExp(`\\b${method}\\(`));
  assert.doesNotMatch(api, /@internal|#engine/);
  for (const [, name, text] of api.matchAll(/^### (\w+)\n\n(.*)$/gm)) assert.ok(text.trim() !== "" && !text.startsWith("```"), `${name} says what it is for`);
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
