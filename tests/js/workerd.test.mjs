// The entries for workerd (of both engines), in Node with the two things that are different there: wasm imports are modules, and there are no workers.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { register } from "node:module";
import path from "node:path";
import test from "node:test";
import { copyTable, expected } from "./support.mjs";

register("./workerd-like.mjs", import.meta.url);

for (const engine of ["", "core/"]) test(`inspects and refreshes on the calling thread: ${engine}workerd.js`, async (t) => {
  const { open, memoryStore, nodeFsStore, WorkerPool } = await import(`../../pkg/dist/${engine}workerd.js`);
  const folder = copyTable(t, "fragments_200");
  const objects = new Map();
  for (const name of readdirSync(folder, { recursive: true })) {
    const file = path.join(folder, name);
    if (statSync(file).isFile()) objects.set(name, new Uint8Array(readFileSync(file)));
  }
  const table = await open(memoryStore(objects));
  assert.equal(table.version, expected("fragments_200").version);
  const progress = [];
  const report = await table.refresh("k_idx", { segments: 3, onProgress: (event) => progress.push(event) });
  assert.equal(report.segments_added, 3);
  assert.deepEqual((await table.index("k_idx")).unindexed_fragments, []);
  assert.equal(progress.filter((event) => event.state === "done" && event.phase === "build").length, 3);
  assert.equal(new WorkerPool({ size: 8 }).size, 1);
  assert.throws(() => nodeFsStore("/tmp"), { code: "INVALID_ARGUMENT" });
});
