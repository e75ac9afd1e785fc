// The entry for browsers, and for anything that is told apart by nothing else.
import { setPlatform } from "./platform.js";
import type { WorkerPort, WorkerSource } from "./platform.js";

/** A `Worker` as a pool sees it. */
function portOf(worker: Worker): WorkerPort {
  return {
    post: (message, transfer) => worker.postMessage(message, transfer ?? []),
    onMessage: (listener) => worker.addEventListener("message", (event) => listener((event as MessageEvent<unknown>).data)),
    onError: (listener) => {
      worker.addEventListener("error", (event) => {
        event.preventDefault(); // it is reported to whoever waits for the task
        listener((event as ErrorEvent).message || "its script could not be loaded (bundlers that copy no assets need init({ worker }))");
      });
      worker.addEventListener("messageerror", () => listener("a message could not be read"));
    },
    terminate: () => worker.terminate(),
    hold: () => undefined,
  };
}

function createWorker(source: WorkerSource | undefined): WorkerPort {
  if (typeof source === "function") return portOf(source() as Worker);
  // The literal form below is what bundlers look for.
  if (source === undefined) return portOf(new Worker(new URL("./worker.js", import.meta.url), { type: "module" }));
  return portOf(new Worker(source, { type: "module" }));
}

let used = false;

setPlatform({
  async loadGlue() {
    // The glue holds one instance per page; a second one needs a page (or a worker) of its own.
    if (used) throw new Error("the engine of this thread has crashed: reload the page, or run it in a worker that can be replaced");
    used = true;
    return import("./whetstone.js");
  },
  defaultWasm: () => new URL("./whetstone_bg.wasm", import.meta.url),
  ...(typeof Worker === "undefined" ? {} : { createWorker }),
  parallelism: () => Math.max(1, globalThis.navigator?.hardwareConcurrency ?? 1),
  environment: () => ({}),
});

export * from "./index.js";
