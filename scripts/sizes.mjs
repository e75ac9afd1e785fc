// Prints what a visitor downloads: raw, gzip and brotli sizes of both engines. Fails when the core engine passes its budget.
import { readFileSync } from "node:fs";
import { gzipSync, brotliCompressSync, constants } from "node:zlib";

/** Bytes of gzip that the core engine may take: edge functions and light pages load it. */
const CORE_BUDGET = 1_000_000;
const kb = (n) => `${(n / 1000).toFixed(1)} KB`;

function sizeOf(name, file) {
  const bytes = readFileSync(new URL(`../pkg/dist/${file}`, import.meta.url));
  const gzip = gzipSync(bytes, { level: 9 }).length;
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }).length;
  console.log(`${name}: ${kb(bytes.length)} raw, ${kb(gzip)} gzip, ${kb(brotli)} brotli`);
  return gzip;
}

sizeOf("full engine", "whetstone_bg.wasm");
const core = sizeOf("core engine", "core/whetstone_bg.wasm");
// Without link-time optimisation sizes say nothing.
const quick = readFileSync(new URL("../pkg/dist/core/.wasm-stamp", import.meta.url), "utf8").includes(" quick ");
if (core > CORE_BUDGET && !quick) {
  console.error(`core engine: ${kb(core - CORE_BUDGET)} over its budget of ${kb(CORE_BUDGET)} gzip. What it can do without goes behind the feature "full" (CONTRIBUTING.md)`);
  process.exit(1);
}
