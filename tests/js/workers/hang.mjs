// A worker that takes a task, stages a file for it, and then never answers again.
import { mkdirSync, writeFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";

parentPort.on("message", (message) => {
  if (message.type === "init") parentPort.postMessage({ type: "ready" });
  if (message.type !== "build") return;
  const { table, uuid } = workerData;
  mkdirSync(`${table}/_indices/${uuid}`, { recursive: true });
  writeFileSync(`${table}/_indices/${uuid}/half.lance`, "half");
  parentPort.postMessage({ type: "uuid", id: message.id, uuid });
  for (;;); // busy: no message gets in
});
