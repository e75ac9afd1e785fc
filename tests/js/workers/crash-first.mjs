// The package's worker, except that its first task ends it with an uncaught error after a file was staged.
import { mkdirSync, writeFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import "whetstone/worker";

const { counter, table, uuid } = workerData;
const attempts = new Int32Array(counter);
parentPort.on("message", (message) => {
  if (message.type !== "build" || Atomics.add(attempts, 0, 1) > 0) return;
  mkdirSync(`${table}/_indices/${uuid}`, { recursive: true });
  writeFileSync(`${table}/_indices/${uuid}/half.lance`, "half");
  parentPort.postMessage({ type: "uuid", id: message.id, uuid });
  // A few milliseconds, so that the message above is heard: a dying thread takes with it what it has not sent yet.
  setTimeout(() => { throw new Error("the floor gave way"); }, 5);
});
