// The entry for Node, Deno and Bun.
import "./node-platform.js";

export * from "./index.js";
