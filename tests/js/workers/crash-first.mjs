// The package's worker, except that its first task ends it with an uncaught error after a file was staged.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import "whetstone/worker";

const { counter, table, uuid, file = `_indices/${uuid}/half.lance` } = workerData;
const attempts = new Int32Array(counter);
parentPort.on("message", (message) => {
  if (message.type !== "build" || Atomics.add(attempts, 0, 1) > 0) return;
  mkdirSync(path.dirname(`${table}/${file}`), { recursive: true });
  writeFileSync(`${table}/${file}`, "half");
  parentPort.postMessage({ type: "uuid", id: message.id, uuid });
  // A few milliseconds, so that the message above is heard: a dying thread takes with it what it has not sent yet.
  setTimeout(() => { throw new Error("the floor gave way"); }, 5);
});
