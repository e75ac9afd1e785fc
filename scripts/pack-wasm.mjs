// Orders the functions of an engine by name, and leaves out its names: `pack-wasm.mjs IN OUT`.
//
// A compressor looks back a few ten kilobytes. Copies of generic code, and what one module does again and again, compress well only
// side by side, while wasm-bindgen orders functions by size: a twentieth of what is downloaded. Nothing else is changed: bodies move,
// the numbers of functions follow wherever one is named. An instruction that is not known here ends the build.
import { readFileSync, writeFileSync } from "node:fs";

const SECTION = { custom: 0, import: 2, function: 3, global: 6, export: 7, start: 8, element: 9, code: 10 };

class Reader {
  constructor(bytes, at = 0, end = bytes.length) {
    Object.assign(this, { bytes, at, end });
  }

  byte() {
    if (this.at >= this.end) throw new Error("cut off");
    return this.bytes[this.at++];
  }

  /** Unsigned; numbers of functions, sizes and the like are below 2^32. */
  uint() {
    let value = 0;
    for (let shift = 1; ; shift *= 128) {
      const byte = this.byte();
      value += (byte & 127) * shift;
      if (byte < 128) return value;
    }
  }

  skip(count) {
    if (this.at + count > this.end) throw new Error("cut off");
    this.at += count;
  }

  take(count) {
    this.skip(count);
    return this.bytes.subarray(this.at - count, this.at);
  }

  name() {
    return Buffer.from(this.take(this.uint())).toString("utf8");
  }
}

function uint(value) {
  const bytes = [];
  for (;;) {
    const low = value % 128;
    value = Math.floor(value / 128);
    if (value === 0) return Buffer.from([...bytes, low]);
    bytes.push(low | 128);
  }
}

/** Copies what it reads, except the numbers of functions. */
class Rewriter {
  constructor(reader, numbers) {
    Object.assign(this, { reader, numbers, parts: [], copied: reader.at });
  }

  func() {
    const { reader } = this;
    this.parts.push(reader.bytes.subarray(this.copied, reader.at), uint(this.numbers[reader.uint()]));
    this.copied = reader.at;
  }

  finish() {
    const { reader } = this;
    this.parts.push(reader.bytes.subarray(this.copied, reader.end));
    reader.at = reader.end;
    return Buffer.concat(this.parts);
  }

  memory() {
    if ((this.reader.uint() & 64) !== 0) this.reader.uint();
    this.reader.uint();
  }

  /** One instruction. */
  instruction() {
    const { reader } = this;
    const at = reader.at;
    const op = reader.byte();
    const uints = (count) => { for (let i = 0; i < count; i += 1) reader.uint(); };
    if (op === 0x10 || op === 0x12 || op === 0xd2) this.func(); // call, return_call, ref.func
    else if (op === 0x02 || op === 0x03 || op === 0x04 || op === 0x41 || op === 0x42 || op === 0xd0) uints(1); // one signed number
    else if (op === 0x0c || op === 0x0d || (op >= 0x20 && op <= 0x26) || op === 0x3f || op === 0x40) uints(1);
    else if (op === 0x11 || op === 0x13) uints(2);
    else if (op === 0x0e) uints(reader.uint() + 1);
    else if (op === 0x1c) uints(reader.uint());
    else if (op >= 0x28 && op <= 0x3e) this.memory();
    else if (op === 0x43) reader.skip(4);
    else if (op === 0x44) reader.skip(8);
    else if (op <= 0x01 || op === 0x05 || op === 0x0b || op === 0x0f || op === 0x1a || op === 0x1b || (op >= 0x45 && op <= 0xc4) || op === 0xd1) return op;
    else if (op === 0xfc) {
      const sub = reader.uint();
      const counts = [0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 2, 1, 2, 1, 2, 1, 1, 1];
      if (counts[sub] === undefined) throw new Error(`instruction 0xfc ${sub} at ${at} is not known`);
      uints(counts[sub]);
    } else if (op === 0xfd) {
      const sub = reader.uint();
      if (sub <= 11 || sub === 92 || sub === 93) this.memory();
      else if (sub === 12 || sub === 13) reader.skip(16);
      else if (sub >= 21 && sub <= 34) reader.skip(1);
      else if (sub >= 84 && sub <= 91) { this.memory(); reader.skip(1); }
      else if (sub > 255) throw new Error(`instruction 0xfd ${sub} at ${at} is not known`);
    } else throw new Error(`instruction 0x${op.toString(16)} at ${at} is not known`);
    return op;
  }

  /** A constant expression. */
  expression() {
    while (this.instruction() !== 0x0b);
  }
}

const section = (id, content) => Buffer.concat([Buffer.from([id]), uint(content.length), content]);
const list = (items) => Buffer.concat([uint(items.length), ...items]);

function parse(bytes) {
  const reader = new Reader(bytes, 8);
  const sections = [];
  while (reader.at < reader.end) {
    const id = reader.byte();
    sections.push({ id, content: reader.take(reader.uint()) });
  }
  return sections;
}

function importedFunctions(content) {
  const reader = new Reader(content);
  const limits = () => { const flags = reader.byte(); reader.uint(); if ((flags & 1) !== 0) reader.uint(); };
  let functions = 0;
  for (let left = reader.uint(); left > 0; left -= 1) {
    reader.name();
    reader.name();
    const kind = reader.byte();
    if (kind === 0) { reader.uint(); functions += 1; }
    else if (kind === 1) { reader.skip(1); limits(); }
    else if (kind === 2) limits();
    else if (kind === 3) reader.skip(2);
    else throw new Error(`an import of kind ${kind}`);
  }
  return functions;
}

function functionNames(sections) {
  const names = new Map();
  for (const { id, content } of sections) {
    const reader = new Reader(content);
    if (id !== SECTION.custom || reader.name() !== "name") continue;
    while (reader.at < reader.end) {
      const kind = reader.byte();
      const end = reader.uint() + reader.at;
      if (kind === 1) for (let left = reader.uint(); left > 0; left -= 1) names.set(reader.uint(), reader.name());
      reader.at = end;
    }
  }
  return names;
}

function elements(content, numbers) {
  const reader = new Reader(content);
  const out = new Rewriter(reader, numbers);
  for (let left = reader.uint(); left > 0; left -= 1) {
    const flags = reader.uint();
    if (flags > 7) throw new Error(`an element segment of kind ${flags}`);
    const active = (flags & 1) === 0;
    const explicit = (flags & 2) !== 0;
    const expressions = (flags & 4) !== 0;
    if (active && explicit) reader.uint();
    if (active) out.expression();
    if (!active || explicit) reader.skip(1);
    for (let items = reader.uint(); items > 0; items -= 1) if (expressions) out.expression(); else out.func();
  }
  return out.finish();
}

/** What a function is ordered by: the same method of all types together, and no hash, which differs from build to build. */
function place(name) {
  const plain = name.replace(/::h[0-9a-f]{16}$/, "");
  const [, type, trait, method] = /^<(.*) as (.*)>::(.*)$/.exec(plain) ?? [];
  return type === undefined ? plain : `${trait}::${method} ${type}`;
}

function packed(bytes) {
  const sections = parse(bytes);
  const content = (id) => sections.find((section) => section.id === id)?.content;
  const imported = importedFunctions(content(SECTION.import));
  const types = new Reader(content(SECTION.function));
  const bodies = new Reader(content(SECTION.code));
  const names = functionNames(sections);
  const functions = [];
  const count = types.uint();
  if (bodies.uint() !== count) throw new Error("not as many bodies as functions");
  for (let at = 0; at < count; at += 1) {
    functions.push({ number: imported + at, type: types.uint(), body: bodies.take(bodies.uint()), name: place(names.get(imported + at) ?? "") });
  }
  if (!functions.some((one) => one.name !== "")) throw new Error("the engine has no names to order by: build it with its name section");
  functions.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.body.length - b.body.length || Buffer.compare(a.body, b.body)));
  const numbers = Array.from({ length: imported }, (_, at) => at);
  functions.forEach((one, at) => { numbers[one.number] = imported + at; });

  const rewrite = {
    [SECTION.function]: () => list(functions.map((one) => uint(one.type))),
    [SECTION.code]: () => list(functions.map(({ body }) => {
      const reader = new Reader(body);
      for (let left = reader.uint(); left > 0; left -= 1) { reader.uint(); reader.skip(1); } // locals
      const out = new Rewriter(reader, numbers);
      out.copied = 0;
      while (reader.at < reader.end) out.instruction();
      const whole = out.finish();
      return Buffer.concat([uint(whole.length), whole]);
    })),
    [SECTION.element]: (old) => elements(old, numbers),
    [SECTION.export]: (old) => {
      const reader = new Reader(old);
      const out = new Rewriter(reader, numbers);
      for (let left = reader.uint(); left > 0; left -= 1) {
        reader.name();
        if (reader.byte() === 0) out.func();
        else reader.uint();
      }
      return out.finish();
    },
    [SECTION.start]: (old) => {
      const out = new Rewriter(new Reader(old), numbers);
      out.func();
      return out.finish();
    },
    [SECTION.global]: (old) => {
      const reader = new Reader(old);
      const out = new Rewriter(reader, numbers);
      for (let left = reader.uint(); left > 0; left -= 1) { reader.skip(2); out.expression(); }
      return out.finish();
    },
  };
  const kept = sections.filter(({ id, content }) => id !== SECTION.custom || !["name", "producers"].includes(new Reader(content).name()));
  return Buffer.concat([bytes.subarray(0, 8), ...kept.map(({ id, content }) => section(id, rewrite[id]?.(content) ?? content))]);
}

const [from, to] = process.argv.slice(2);
const before = readFileSync(from);
const after = packed(before);
const shape = (module) => JSON.stringify([WebAssembly.Module.imports(module), WebAssembly.Module.exports(module)]);
if (shape(new WebAssembly.Module(after)) !== shape(new WebAssembly.Module(before))) throw new Error("imports or exports came out differently");
writeFileSync(to, after);
