// Node, and what imitates it (Deno, Bun): files, worker_threads, environment variables.
import { setMaxListeners } from "node:events";
import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { shownAddress } from "./address.js";
import { invalid } from "./errors.js";
import { folderStore } from "./node-fs.js";
import { setPlatform } from "./platform.js";
import type { Glue, WorkerPort, WorkerSource } from "./platform.js";

function createWorker(source: WorkerSource | undefined): WorkerPort {
  const worker = typeof source === "function" ? (source() as Worker) : startWorker(source);
  let ending = false;
  return {
    post: (message, transfer) => worker.postMessage(message, transfer ?? []),
    onMessage: (listener) => worker.on("message", listener),
    onError: (listener) => {
      worker.on("error", (error: Error) => listener(error.message));
      worker.on("messageerror", (error: Error) => listener(error.message));
      worker.on("exit", (code) => { if (!ending) listener(`the worker ended with code ${code}`); });
    },
    terminate: () => {
      ending = true;
      void worker.terminate();
    },
    hold: (alive) => { if (alive) worker.ref(); else worker.unref(); },
  };
}

function startWorker(source: WorkerSource | undefined): Worker {
  // Not the flags of this process: some (`--input-type`, as in `node --input-type=module -e …`) refuse to start a worker from a file.
  return new Worker(locate((source ?? new URL("./worker-node.js", import.meta.url)) as string | URL), { execArgv: [] });
}

function locate(source: string | URL): URL | string {
  return typeof source === "string" && source.startsWith("file:") ? new URL(source) : source;
}

function localPath(target: string): { path: string; url: string } | null {
  let name = target;
  if (target.startsWith("file:")) name = pathOf(target);
  // A scheme that was not understood is a mistake, not a file name; one letter is a drive.
  else if (target === "" || /^[a-z][a-z0-9+.-]+:\/\//i.test(target)) return null;
  const absolute = path.resolve(name);
  // As it is written, not percent-encoded: the engine's paths are names, not addresses.
  return { path: absolute, url: `file:///${absolute.split(path.sep).join("/").replace(/^\/+/, "")}` };
}

function pathOf(target: string): string {
  try {
    return fileURLToPath(target);
  } catch (error) {
    throw invalid(`${shownAddress(target)} is no address of a folder on this machine: ${(error as Error).message}`);
  }
}

setPlatform({
  // The query makes it another module, with an instance of its own: how a crashed engine is replaced.
  loadGlue: (generation) => (generation === 0 ? import("./whetstone.js") : import(`./whetstone.js?generation=${generation}`) as Promise<Glue>),
  defaultWasm: () => new URL("./whetstone_bg.wasm", import.meta.url),
  readFile: async (where) => new Uint8Array(await readFile(locate(where))),
  createWorker,
  parallelism: () => availableParallelism(),
  localFiles: () => folderStore(path.parse(process.cwd()).root),
  localPath,
  environment: () => process.env,
  manyListeners: (signal) => setMaxListeners(0, signal),
});
