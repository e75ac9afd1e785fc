/** The worker of made-up tables, in place of the engine's. See made-up.worker.ts. */
export function spawnEngine(): Worker {
  return new Worker(new URL("./made-up.worker.ts", import.meta.url), { type: "module", name: "made-up" });
}
