// Plans and builds jobs, and commits them when told to: one JSON line in, one out. `{"plan": TARGET, "job": KIND, "index": NAME}` answers
// with a number; `{"commit": NUMBER}` with the report or the error. What happens between the two is the test's.
import { createInterface } from "node:readline";
import { buildSegment, open } from "../../pkg/dist/node.js";

const planned = [];

async function plan({ plan: target, job, index }) {
  const table = await open(target);
  if (job === "drop") {
    const drop = await table.planDropIndex(index);
    return planned.push({ table, commit: () => table.run(drop) });
  }
  const work = job === "merge" ? await table.planMerge(index) : await table.planRefresh(index);
  const built = [];
  for (const task of work.tasks) built.push(await buildSegment(task, table.store.descriptor));
  return planned.push({ table, commit: () => table.commitSegments(work, built) });
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  let answer;
  try {
    if (asked.plan) answer = { number: (await plan(asked)) - 1 };
    else {
      const { table, commit } = planned[asked.commit];
      answer = { report: await commit() };
      table.close();
    }
  } catch (error) {
    answer = { error: error.toJSON?.() ?? { code: "THROWN", message: String(error.stack) } };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
