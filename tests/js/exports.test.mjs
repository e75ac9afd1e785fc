// The exports map of the package: what every kind of host finds.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { PACKAGE } from "./support.mjs";

const manifest = JSON.parse(readFileSync(path.join(PACKAGE, "package.json"), "utf8"));

/** All files an entry of the map leads to, with the conditions on the way. */
function* leaves(entry, conditions = []) {
  if (typeof entry === "string") yield { file: entry, conditions };
  else for (const [condition, next] of Object.entries(entry)) yield* leaves(next, [...conditions, condition]);
}

/** The file a host with these conditions takes, by Node's rule: the first key that applies. */
function resolve(entry, conditions) {
  if (typeof entry === "string") return entry;
  for (const [condition, next] of Object.entries(entry)) {
    if (condition === "default" || conditions.includes(condition)) return resolve(next, conditions);
  }
  return undefined;
}

test("every target of the map exists", () => {
  let seen = 0;
  for (const [name, entry] of Object.entries(manifest.exports)) {
    for (const { file, conditions } of leaves(entry)) {
      assert.ok(existsSync(path.join(PACKAGE, file)), `${name} [${conditions}] leads to ${file}, which is not there`);
      seen += 1;
    }
  }
  assert.ok(seen > 8);
});

test("types come first and default comes last", () => {
  for (const [name, entry] of Object.entries(manifest.exports)) {
    if (typeof entry === "string") continue;
    const keys = Object.keys(entry);
    assert.equal(keys[0], "types", `${name}: TypeScript takes the first condition that applies`);
    if (keys.includes("default")) assert.equal(keys.at(-1), "default", `${name}: nothing after default is ever reached`);
  }
});

test("each host gets its own entry", () => {
  const main = manifest.exports["."];
  const cases = {
    workerd: ["workerd", "worker", "browser", "import"],
    deno: ["deno", "node", "import"],
    bun: ["bun", "node", "import"],
    node: ["node", "import"],
    browser: ["browser", "import"],
    nothing: ["import"],
  };
  const found = Object.fromEntries(Object.entries(cases).map(([host, conditions]) => [host, resolve(main, conditions)]));
  assert.equal(found.workerd, "./dist/workerd.js");
  assert.equal(found.node, "./dist/node.js");
  assert.equal(found.browser, "./dist/browser.js");
  assert.equal(found.nothing, "./dist/browser.js");
  for (const host of ["deno", "bun"]) assert.equal(found[host], "./dist/node.js");
  assert.equal(resolve(main, ["types", "node", "import"]), "./dist/index.d.ts");
  assert.match(resolve(manifest.exports["./whetstone_bg.wasm"], ["browser"]), /\.wasm$/);
});

test("the entries export the same names, without awaiting at the top level", async () => {
  const node = Object.keys(await import("whetstone")).sort();
  assert.deepEqual(node, Object.keys(await import(path.join(PACKAGE, "dist/browser.js"))).sort());
  for (const name of ["init", "open", "Table", "buildSegment", "WorkerPool", "httpStore", "s3Store", "nodeFsStore", "memoryStore", "hostStore", "WhetstoneError"]) {
    assert.ok(node.includes(name), name);
  }
  for (const entry of ["browser", "node", "workerd", "worker", "worker-node", "engine"]) {
    // A top-level await would stall every importer and is refused by some bundlers: at the start of a line nothing awaits.
    assert.doesNotMatch(readFileSync(path.join(PACKAGE, `dist/${entry}.js`), "utf8"), /^(const .*= )?await /m, entry);
  }
});

test("types and declarations hide what is internal", () => {
  const declarations = readFileSync(path.join(PACKAGE, "dist/index.d.ts"), "utf8");
  assert.match(declarations, /open, Table/);
  assert.doesNotMatch(readFileSync(path.join(PACKAGE, "dist/table.d.ts"), "utf8"), /constructor\(engine/);
});

test("files of the package cover every target and the bin", () => {
  const shipped = manifest.files;
  for (const entry of Object.values(manifest.exports)) {
    for (const { file } of leaves(entry)) {
      if (file === "./package.json") continue;
      assert.ok(shipped.some((prefix) => file.startsWith(`./${prefix}`)), `${file} is not among the files that are published`);
    }
  }
  assert.ok(existsSync(path.join(PACKAGE, manifest.bin.whetstone)));
});
