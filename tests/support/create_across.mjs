// Plans and builds an index on an old version and commits it on the newest: create_across.mjs TARGET VERSION NAME COLUMN METHOD OPTIONS.
import { buildSegment, open } from "../../pkg/dist/node.js";

const [target, version, name, column, method, options = "{}"] = process.argv.slice(2);
const answer = (document) => process.stdout.write(`${JSON.stringify(document)}\n`);
const old = await open(target, { version: Number(version) });
const table = await open(target);
try {
  const plan = await old.planCreateIndex(name, column, method, JSON.parse(options));
  const built = [];
  for (const task of plan.tasks) built.push(await buildSegment(task, old.store.descriptor));
  answer({ report: await table.commitSegments(plan, built) });
} catch (error) {
  answer({ error: error.toJSON?.() ?? { code: "THROWN", message: String(error) } });
}
old.close();
table.close();
