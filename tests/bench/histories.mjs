// histories.mjs TABLE…: times what follows from the reuse history of each table, every time on a handle that has not read it yet.
// Prints JSON.
import { open } from "../../pkg/dist/node.js";

const times = [];
for (const target of process.argv.slice(2)) {
  let least = Infinity;
  let opened = Infinity;
  let plan;
  for (let round = 0; round < 4; round++) {
    const before = performance.now();
    const table = await open(target);
    const start = performance.now();
    // A plan to prune asks what every segment covers, and answers little.
    plan = await table.planPrune();
    least = Math.min(least, performance.now() - start);
    opened = Math.min(opened, start - before);
    table.close();
  }
  times.push({ open_ms: opened, ms: least, pruned: plan.segments.length });
}
process.stdout.write(JSON.stringify(times));
