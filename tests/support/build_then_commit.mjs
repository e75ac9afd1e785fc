// Plans and builds a refresh, says so, and commits when a line comes: build_then_commit.mjs TARGET INDEX. What happens in between is the
// test's. The line is JSON: {} or changes to the first segment, such as another uuid.
import { createInterface } from "node:readline";
import { buildSegment, open } from "../../pkg/dist/node.js";

const [target, index, options = "{}"] = process.argv.slice(2);
const table = await open(target);
const answer = (document) => process.stdout.write(`${JSON.stringify(document)}\n`);
try {
  const plan = await table.planRefresh(index, JSON.parse(options));
  const built = [];
  for (const task of plan.tasks) built.push(await buildSegment(task, table.store.descriptor));
  answer({ built: built.map((segment) => segment.uuid) });
  for await (const line of createInterface({ input: process.stdin })) {
    Object.assign(built[0], JSON.parse(line));
    answer({ report: await table.commitSegments(plan, built) });
    break;
  }
} catch (error) {
  answer({ error: error.toJSON?.() ?? { code: "THROWN", message: String(error) } });
}
table.close();
