// Makes and changes a table in a folder: sandbox_steps.mjs FOLDER STEPS. Steps are JSON, [name, ...arguments] each; the answer is one
// document a step. An error is an answer too, and the steps after it are still taken.
import { mkdirSync, writeFileSync } from "node:fs";
import { archiveTable, createSandbox, memoryStore, nodeFsStore, open, copyTable } from "../../pkg/dist/node.js";

const [folder, text] = process.argv.slice(2);
let table = null;
const memory = memoryStore();
const steps = {
  async create(options) {
    mkdirSync(folder, { recursive: true });
    table = await createSandbox(folder, options);
    return { version: table.version, rows: table.rows };
  },
  /** The same in memory, then taken out as a tar file and by copying. */
  async createInMemory(options) {
    table = await createSandbox(memory, options);
    return { version: table.version, rows: table.rows };
  },
  async archive(file, name) {
    const bytes = await archiveTable(memory, name);
    writeFileSync(file, bytes);
    return { bytes: bytes.length };
  },
  /** The same of a folder. */
  async archiveFolder(file, name) {
    const bytes = await archiveTable(nodeFsStore(folder), name);
    writeFileSync(file, bytes);
    return { bytes: bytes.length };
  },
  async copy(to) {
    mkdirSync(to, { recursive: true });
    return copyTable(memory, nodeFsStore(to));
  },
  async open() {
    table = await open(folder);
    return { version: table.version, rows: table.rows };
  },
  append: (rows, options) => table.append(rows, options),
  delete: (rows) => table.delete(rows),
  update: (rows, set) => table.update(rows, set),
  planDelete: (rows) => table.planDelete(rows),
  /** Plans, lets other steps happen, runs: what was planned on may have changed. */
  async late(kind, argument, between) {
    await table.reload();
    const plan = kind === "delete" ? await table.planDelete(argument) : await table.planAppend(argument);
    const other = await open(folder);
    for (const [name, ...rest] of between) await other[name](...rest);
    return table.run(plan);
  },
  index: (name, column, method, options) => table.createIndex(name, column, method, options),
  refresh: (name, options) => table.refresh(name, options),
  drop: (name) => table.dropIndex(name),
  compact: (options) => table.compact(options),
};
const answers = [];
for (const [name, ...rest] of JSON.parse(text)) {
  try {
    answers.push((await steps[name](...rest)) ?? null);
  } catch (error) {
    answers.push({ error: error.toJSON?.() ?? { code: "THROWN", message: String(error?.stack ?? error) } });
  }
}
process.stdout.write(JSON.stringify(answers));
table?.close();
