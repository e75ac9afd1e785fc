// Builds and commits segments over exactly the fragments given, through the package: commit_runs.mjs TARGET INDEX '[[0,2],[1,3]]'.
// A planner only makes contiguous runs; to lay out coverage in any other way one edits the tasks, which are plain data.
import { buildSegment, open } from "../../pkg/dist/node.js";

const [target, index, text] = process.argv.slice(2);
const runs = JSON.parse(text);
const table = await open(target);
const plan = await table.planRefresh(index, { segments: 1 });
const [whole] = plan.tasks;
const rows = new Map((await table.fragments()).map((f) => [f.id, f.rows]));
const built = [];
for (const fragments of runs) {
  const task = { ...whole, fragments, rows: fragments.reduce((sum, id) => sum + rows.get(id), 0) };
  built.push(await buildSegment(task, table.store.descriptor));
}
const report = await table.commitSegments(plan, built);
process.stdout.write(`${JSON.stringify(report)}\n`);
table.close();
