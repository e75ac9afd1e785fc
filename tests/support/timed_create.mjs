// Creates an index with two workers, in two segments, and prints the seconds that took, starting the workers included:
// timed_create.mjs TARGET NAME COLUMN METHOD
import { open, WorkerPool } from "../../pkg/dist/node.js";

const [target, name, column, method] = process.argv.slice(2);
const table = await open(target);
const start = performance.now();
const pool = new WorkerPool({ size: 2 });
await table.createIndex(name, column, method, { segments: 2, pool });
process.stdout.write(`${(performance.now() - start) / 1000}\n`);
pool.close();
table.close();
