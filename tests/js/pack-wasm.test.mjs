// Ordering the functions of an engine changes where they lie, and nothing that they do.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { ROOT, scratch } from "./support.mjs";

const text = (name) => [name.length, ...Buffer.from(name)];
const sized = (bytes) => [...(bytes.length < 128 ? [bytes.length] : [(bytes.length & 127) | 128, bytes.length >> 7]), ...bytes];
const section = (id, bytes) => [id, ...sized(bytes)];
const list = (items) => [items.length, ...items.flat()];
const I32 = 0x7f;

/** An import and five functions; each is named in another way: a call, an element, `ref.func` in code and in a global, an export, the start. */
function module() {
  const body = (...code) => sized([0, ...code, 0x0b]);
  const functions = [
    ["zeta::h0123456789abcdef", 0, body(0x10, 0, 0x41, 1, 0x6a)], // 1: import + 1
    ["<mu as alpha::Trait>::run::h0123456789abcdef", 0, body(0x10, 1, 0x41, 10, 0x6a)], // 2: zeta + 10
    ["beta", 0, body(0x41, 0, 0x11, 0, 0)], // 3: what the table has at 0
    ["gamma", 1, body(0x41, 7, 0x24, 0)], // 4: the start: sets a global
    ["delta", 0, body(0xd2, 2, 0xd1, 0x23, 0, 0x6a, 0x42, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0xa7, 0x6a)], // 5: is_null + 7 - 1…
  ];
  const names = [[0, "import"], ...functions.map(([name], at) => [at + 1, name])];
  return Buffer.from([
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, list([[0x60, 0, 1, I32], [0x60, 0, 0]])),
    ...section(2, list([[...text("host"), ...text("five"), 0, 0]])),
    ...section(3, list(functions.map(([, type]) => [type]))),
    ...section(4, list([[0x70, 0, 2]])),
    ...section(6, list([[I32, 1, 0x41, 0, 0x0b], [0x70, 0, 0xd2, 2, 0x0b]])),
    ...section(7, list([[...text("one"), 0, 1], [...text("two"), 0, 2], [...text("three"), 0, 3], [...text("five"), 0, 5], [...text("held"), 3, 1]])),
    ...section(8, [4]),
    ...section(9, list([[0, 0x41, 0, 0x0b, ...list([[2], [1]])]])),
    ...section(10, list(functions.map(([, , code]) => code))),
    ...section(0, [...text("name"), 1, ...sized(list(names.map(([number, name]) => [number, ...text(name)])))]),
    ...section(0, [...text("kept"), 1, 2, 3]),
  ]);
}

function pack(t, bytes) {
  const folder = scratch(t);
  writeFileSync(path.join(folder, "in.wasm"), bytes);
  execFileSync(process.execPath, [path.join(ROOT, "scripts/pack-wasm.mjs"), path.join(folder, "in.wasm"), path.join(folder, "out.wasm")], { stdio: "pipe" });
  return readFileSync(path.join(folder, "out.wasm"));
}

function answers(bytes) {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { host: { five: () => 5 } });
  const { one, two, three, five, held } = exports;
  return [one(), two(), three(), five(), held.value()];
}

test("calls, elements, references, exports and the start follow", (t) => {
  const before = module();
  const after = pack(t, before);
  assert.deepEqual(answers(before), [6, 16, 16, 6, 16]);
  assert.deepEqual(answers(after), answers(before));
  assert.notDeepEqual(after.indexOf(Buffer.from([0x41, 10, 0x6a])) < after.indexOf(Buffer.from([0x41, 1, 0x6a])), before.indexOf(Buffer.from([0x41, 10, 0x6a])) < before.indexOf(Buffer.from([0x41, 1, 0x6a])), "they lie in another order");
  const sections = (name) => WebAssembly.Module.customSections(new WebAssembly.Module(after), name).length;
  assert.deepEqual([sections("name"), sections("kept")], [0, 1]);
  assert.ok(after.length < before.length);
});

test("what has no names, or an instruction that is not known, is refused", (t) => {
  const packed = pack(t, module());
  assert.throws(() => pack(t, packed), /no names to order by/);
  const odd = module();
  odd[odd.indexOf(Buffer.from([0x41, 7, 0x24])) + 2] = 0xfa;
  assert.throws(() => pack(t, odd), /0xfa at \d+ is not known/);
});
