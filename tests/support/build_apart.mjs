// Builds the segments of a plan, or commits them, in two runs of a program: build_apart.mjs build|commit TARGET PLAN.json BUILT.json.
import { readFile, writeFile } from "node:fs/promises";
import { buildSegment, open } from "../../pkg/dist/node.js";

const [what, target, planFile, builtFile] = process.argv.slice(2);
const plan = JSON.parse(await readFile(planFile, "utf8"));
const table = await open(target);
if (what === "build") {
  const built = [];
  for (const task of plan.tasks) built.push(await buildSegment(task, table.store.descriptor));
  await writeFile(builtFile, JSON.stringify(built));
} else {
  try {
    const report = await table.commitSegments(plan, JSON.parse(await readFile(builtFile, "utf8")));
    process.stdout.write(`${JSON.stringify({ report })}\n`);
  } catch (error) {
    process.stdout.write(`${JSON.stringify({ error: { code: error.code ?? "NOT_TYPED", message: error.message, changed: error.changed } })}\n`);
  }
}
table.close();
