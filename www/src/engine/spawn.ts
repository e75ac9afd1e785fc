/** Starts the worker that holds the engine. A trap in there ends that worker, never the page. */
export function spawnEngine(): Worker {
  return new Worker(new URL("./engine.worker.ts", import.meta.url), { type: "module", name: "engine" });
}
