// Plans compactions through the package, one a line: {"path", "options", "pairs": [[a, b], …]} in, {"plan", "pairs", "forecast"} or {"error"} out.
import { createInterface } from "node:readline";
import { open } from "../../pkg/dist/node.js";

for await (const line of createInterface({ input: process.stdin })) {
  const { path, options, pairs } = JSON.parse(line);
  let answer;
  try {
    const table = await open(path);
    const explained = [];
    for (const [a, b] of pairs) explained.push(await table.explainPair(a, b, options));
    answer = {
      plan: await table.planCompaction(options), pairs: explained,
      forecast: await table.forecast({ compaction: options, plans: ["compact"] }),
    };
    table.close();
  } catch (error) {
    answer = { error: error.toJSON?.() ?? String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
