// Creates an index with an engine whose memory has a ceiling; growing past it would be a trap:
// limited_build.mjs TARGET NAME COLUMN METHOD MEMORY_BYTES MAX_BYTES
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { engineOfAtMost } from "../js/engine-with-limit.mjs";
import { buildSegment, init, open } from "../../pkg/dist/node.js";

const [target, name, column, method, memory, maxBytes] = process.argv.slice(2);
const folder = mkdtempSync(path.join(tmpdir(), "whetstone-limited-"));
try {
  const engine = path.join(folder, "limited.wasm");
  writeFileSync(engine, engineOfAtMost(Number(memory)));
  await init({ wasm: pathToFileURL(engine).href });
  const table = await open(target);
  const plan = await table.planCreateIndex(name, column, method, { maxBytes: Number(maxBytes) });
  const built = [];
  // One task after the other in this one engine, as in an isolate at the edge.
  for (const task of plan.tasks) built.push(await buildSegment(task, table.store.descriptor));
  await table.commitSegments(plan, built);
  process.stdout.write(`${JSON.stringify(built)}\n`);
  table.close();
} catch (error) {
  process.stdout.write(`${JSON.stringify({ error: error.toJSON?.() ?? { code: error.code, message: String(error.stack) } })}\n`);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true });
}
