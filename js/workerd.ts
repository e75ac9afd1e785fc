// The entry for workerd (Cloudflare Workers and the like): the engine is imported as a module, since compiling bytes is not allowed
// there, and tasks run on the calling thread, since there are no workers.
import { setPlatform } from "./platform.js";
import wasm from "./whetstone_bg.wasm";

setPlatform({
  loadGlue: () => import("./whetstone.js"),
  defaultWasm: () => wasm,
  parallelism: () => 1,
  environment: () => ({}),
});

export * from "./index.js";
