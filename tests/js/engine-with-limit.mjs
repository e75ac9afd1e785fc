// The engine with a ceiling on its memory: growing past it is a trap, the real thing.
import { readFileSync } from "node:fs";
import path from "node:path";
import { PACKAGE } from "./support.mjs";

function leb(bytes, at) {
  let value = 0;
  let shift = 0;
  for (;; at += 1) {
    value += (bytes[at] & 0x7f) * 2 ** shift;
    shift += 7;
    if (bytes[at] < 0x80) return [value, at + 1];
  }
}

function toLeb(value) {
  const out = [];
  do {
    out.push((value % 128) | (value >= 128 ? 0x80 : 0));
    value = Math.floor(value / 128);
  } while (value > 0);
  return out;
}

/** The engine's bytes with its one memory limited to its first size and `pages` pages of 64 KiB more. */
export const engineWithLimit = (pages) => limited((least) => least + pages);

/** The engine's bytes with its one memory limited to `bytes`. */
export const engineOfAtMost = (bytes) => limited(() => Math.floor(bytes / 65536));

function limited(most) {
  const bytes = readFileSync(path.join(PACKAGE, "dist/whetstone_bg.wasm"));
  for (let at = 8; at < bytes.length;) {
    const id = bytes[at];
    const [size, body] = leb(bytes, at + 1);
    if (id === 5) {
      const [count, flags] = leb(bytes, body);
      if (count !== 1) throw new Error("the engine has more than one memory");
      const [least] = leb(bytes, flags + 1);
      const section = [1, 1, ...toLeb(least), ...toLeb(most(least))];
      return Buffer.concat([bytes.subarray(0, at), Buffer.from([5, ...toLeb(section.length), ...section]), bytes.subarray(body + size)]);
    }
    at = body + size;
  }
  throw new Error("the engine has no memory");
}
