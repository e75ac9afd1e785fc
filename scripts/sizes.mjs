// Prints what a visitor downloads: raw, gzip and brotli sizes of the engine, and says when gzip passes the budget.
import { readFileSync } from "node:fs";
import { gzipSync, brotliCompressSync, constants } from "node:zlib";

const budget = 1_000_000;
const file = new URL("../pkg/dist/whetstone_bg.wasm", import.meta.url);
const bytes = readFileSync(file);
const gzip = gzipSync(bytes, { level: 9 }).length;
const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }).length;
const kb = (n) => `${(n / 1000).toFixed(1)} KB`;
console.log(`engine: ${kb(bytes.length)} raw, ${kb(gzip)} gzip, ${kb(brotli)} brotli`);
if (gzip > budget) {
  console.error(`engine: over the budget of ${kb(budget)} gzip`);
}
