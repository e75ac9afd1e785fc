/** Tables to try things on: made anywhere, changed as Lance changes them, and taken along as a folder. */
import { countRows } from "./counting.js";
import { aborted, currentEngine } from "./engine.js";
import { invalid, WhetstoneError } from "./errors.js";
import { Objects } from "./objects.js";
import { ensureCommits } from "./race.js";
import type { ChangeOptions, SandboxOptions } from "./sandbox-types.js";
import { callbacksOf, storeFor } from "./stores.js";
import type { Store, StoreCallbacks, StoreOptions } from "./stores.js";
import { Table } from "./table.js";

/**
 * Makes a table where there is none, with rows from deterministic generators: the same columns, seed and row numbers give the same values
 * everywhere. Columns are ints, floats, bool, utf8, timestamps, dates and lists of utf8 (`labels`).
 */
export async function createSandbox(
  target: string | URL | Store, options: SandboxOptions & { store?: Store | StoreOptions; } & Pick<ChangeOptions, "signal" | "onProgress">,
): Promise<Table> {
  const { store: how, signal, onProgress, rowsPerFragment, dataStorageVersion, columns, rows, seed } = options;
  const store = storeFor(target, how);
  const engine = await currentEngine();
  const objects = new Objects(engine, store);
  const wrongs: (string | null)[] = [];
  try {
    // The race that proves a store needs a handle; what it finds is told to the new table too, which has its own.
    await ensureCommits(store, objects.info(), (wrong) => { wrongs.push(wrong); }, signal);
  } finally {
    objects.close();
  }
  const request = {
    columns, ...(rows === undefined ? {} : { rows }), ...(seed === undefined ? {} : { seed }),
    ...(rowsPerFragment === undefined ? {} : { rows_per_fragment: rowsPerFragment }),
    ...(dataStorageVersion === undefined ? {} : { data_storage_version: dataStorageVersion }),
  };
  const proven = wrongs.length > 0 && wrongs.every((wrong) => wrong === null);
  const descriptor = proven ? { ...store.descriptor, unsafe_commits: true } : store.descriptor;
  const spec = { descriptor, callbacks: callbacksOf(store.descriptor, store.callbacks), onRequest: undefined };
  if (signal?.aborted) throw aborted();
  // Not dropped when the signal fires: what was written is cleared away first.
  const id = await engine.call<number>((glue) => glue.sandboxCreate(spec, request, countRows(rows ?? 0, signal, onProgress)));
  return new Table(engine, id, store, undefined);
}

/** Folders of a table, those that name others last: a copy that is cut off is no table. */
const FOLDERS = ["data", "_deletions", "_indices", "_fri", "_transactions", "tree", "_refs", "_versions"];

/** The functions of a store of this machine, and what they want in front of a path: those of the file system begin at its root. */
function local(store: Store): { functions: StoreCallbacks; root: string } {
  const functions = store.descriptor.kind === "host" ? callbacksOf(store.descriptor, store.callbacks) : undefined;
  if (functions === undefined) throw invalid(`${store.uri} is no store of this machine: its objects are copied with the tools of the store`);
  if (store.callbacks !== undefined) return { functions, root: "" };
  return { functions, root: `${decodeURIComponent(new URL(store.descriptor.url).pathname).replace(/^\/+|\/+$/g, "")}/` };
}

/** Every object of a table in a store of this machine, the manifests last. */
async function* objectsOf(store: Store, leaveOut: (path: string) => boolean = () => false): AsyncGenerator<{ path: string; data: Uint8Array }> {
  const { functions: { list, get }, root } = local(store);
  if (list === undefined || get === undefined) throw invalid(`${store.uri} cannot be read`);
  const walk = async function* (folder: string): AsyncGenerator<string> {
    for (const entry of await list(root + folder)) {
      const path = `${folder}/${entry.name}`;
      if (entry.size === undefined) yield* walk(path);
      else if (!entry.name.endsWith(".tmp")) yield path;
    }
  };
  for (const folder of FOLDERS) {
    for await (const path of walk(folder)) {
      if (leaveOut(path)) continue;
      const object = await get(root + path, null);
      if (object !== null) yield { path, data: object.data };
    }
  }
}

/** Copies a table, every version of it, to another store: e.g. from memory into a folder that a person chose. The target must be empty. */
export async function copyTable(from: Store, to: Store): Promise<{ objects: number; bytes: number }> {
  const { functions: { put }, root } = local(to);
  if (put === undefined) throw invalid(`${to.uri} cannot be written to`);
  let objects = 0;
  let bytes = 0;
  for await (const { path, data } of objectsOf(from)) {
    if ((await put(root + path, [data], { create: true })) === "exists") throw invalid(`${to.uri} is not empty: ${path} is there; ${objects === 0 ? "nothing was changed" : `${objects} objects were copied`}`);
    objects += 1;
    bytes += data.length;
  }
  if (objects === 0) throw new WhetstoneError("TABLE_NOT_FOUND", `there is no table at ${from.uri}`);
  return { objects, bytes };
}

/** Most bytes of an archive. */
const ARCHIVE_LIMIT = 1 << 30;
const BLOCK = 512;

/**
 * A table as a tar file with one folder in it, which Lance opens once unpacked. `name` is that folder, e.g. `users.lance`. What `leaveOut`
 * answers true for, by its path below the table, is not taken along: e.g. files that no version names.
 */
export async function archiveTable(store: Store, name: string, { leaveOut }: { leaveOut?: (path: string) => boolean } = {}): Promise<Uint8Array<ArrayBuffer>> {
  if (!/^[\w.-]{1,60}$/.test(name) || /^\.+$/.test(name)) throw invalid(`the folder's name is 1 to 60 letters, digits, dots and dashes, not ${JSON.stringify(name)}`);
  const parts: Uint8Array[] = [];
  let size = 2 * BLOCK;
  for await (const { path, data } of objectsOf(store, leaveOut)) {
    const padding = (BLOCK - (data.length % BLOCK)) % BLOCK;
    size += BLOCK + data.length + padding;
    if (size > ARCHIVE_LIMIT) throw new WhetstoneError("MEMORY_LIMIT", `the table is over ${ARCHIVE_LIMIT} bytes: copy it into a folder instead`);
    parts.push(tarHeader(`${name}/${path}`, data.length), data, new Uint8Array(padding));
  }
  if (parts.length === 0) throw new WhetstoneError("TABLE_NOT_FOUND", `there is no table at ${store.uri}`);
  const all = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** The header of a plain file in the `ustar` form, which every tar reads. */
function tarHeader(path: string, size: number): Uint8Array {
  const header = new Uint8Array(BLOCK);
  const text = (at: number, value: string): void => { header.set(new TextEncoder().encode(value), at); };
  const octal = (at: number, length: number, value: number): void => { text(at, value.toString(8).padStart(length - 1, "0")); };
  // A path over 100 bytes is cut at a slash: the front goes into a field of its own.
  const cut = path.length > 100 ? path.indexOf("/", path.length - 101) : -1;
  const [prefix, name] = cut < 0 ? ["", path] : [path.slice(0, cut), path.slice(cut + 1)];
  if (name.length > 100 || prefix.length > 155) throw invalid(`${path} is too long for a tar file`);
  text(0, name);
  octal(100, 8, 0o644);
  octal(108, 8, 0);
  octal(116, 8, 0);
  octal(124, 12, size);
  octal(136, 12, Math.floor(Date.now() / 1000));
  text(148, "        ");
  text(156, "0");
  text(257, "ustar\u000000");
  text(345, prefix);
  octal(148, 7, header.reduce((sum, byte) => sum + byte, 0));
  return header;
}
