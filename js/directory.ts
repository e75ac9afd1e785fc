/**
 * Tables in a folder that a page was given (File System Access), or in the page's own storage (OPFS): the same interface.
 *
 * Neither can create a file only if it is absent, so that is done under a Web Lock, which all pages and workers of this origin share.
 * Other programs, and pages of other origins, that write the same folder at the same time are not seen by it.
 */
import { invalid } from "./errors.js";
import { operationsStore } from "./stores.js";
import type { HostEntry, HostOperations, Store } from "./stores.js";

/** Options of {@link directoryStore}. */
export interface DirectoryStoreOptions {
  /** Path of the table below the folder; the folder itself when absent. */
  path?: string;
  /** Shown to people. */
  uri?: string;
}

/** The table in (or below) a folder, e.g. of `showDirectoryPicker({ mode: "readwrite" })`. */
export function directoryStore(folder: FileSystemDirectoryHandle, options: DirectoryStoreOptions = {}): Store {
  if (folder?.kind !== "directory") throw invalid("directoryStore takes the handle of a folder");
  const path = partsOf(options.path ?? "");
  return operationsStore(operations(async () => folder, path), options.uri ?? `folder:${[folder.name, ...path].join("/")}`, UNDER_A_LOCK, undefined, true);
}

/** The table at a path of the page's own storage (the origin private file system). */
export function opfsStore(path: string): Store {
  const parts = partsOf(path);
  const root = async (): Promise<FileSystemDirectoryHandle> => {
    const storage = globalThis.navigator?.storage;
    if (typeof storage?.getDirectory !== "function") throw Object.assign(new Error("this page has no storage of its own (it needs https or localhost)"), { status: 403 });
    return storage.getDirectory();
  };
  return operationsStore(operations(root, parts), `opfs:${parts.join("/")}`, UNDER_A_LOCK, undefined, true);
}

const UNDER_A_LOCK = { spelling: "a look and a move under a Web Lock of the origin", loser: "the file is there" };

interface Movable {
  move?(folder: FileSystemDirectoryHandle, name: string): Promise<void>;
}

function partsOf(path: string): string[] {
  const parts = path.split("/").filter((part) => part !== "");
  if (parts.some((part) => part === "." || part === "..")) throw invalid("the path has . or .. in it");
  return parts;
}

function operations(root: () => Promise<FileSystemDirectoryHandle>, base: string[]): HostOperations {
  const folderAt = async (parts: string[], create: boolean): Promise<FileSystemDirectoryHandle> => {
    let folder = await root();
    for (const part of [...base, ...parts]) folder = await folder.getDirectoryHandle(part, { create });
    return folder;
  };
  const split = (path: string): { parts: string[]; name: string } => {
    const parts = path.split("/");
    const name = parts.pop() ?? "";
    return { parts, name };
  };
  return {
    async get(path, range) {
      const { parts, name } = split(path);
      try {
        const file = await (await (await folderAt(parts, false)).getFileHandle(name)).getFile();
        const part = range === null ? file : file.slice(range.start, range.end);
        return { data: new Uint8Array(await part.arrayBuffer()), size: file.size, modified: file.lastModified };
      } catch (error) {
        if (absent(error)) return null;
        throw failure(error);
      }
    },
    async list(folder) {
      try {
        const entries: HostEntry[] = [];
        for await (const [name, handle] of entriesOf(await folderAt(folder === "" ? [] : folder.split("/"), false))) {
          if (handle.kind === "directory") {
            entries.push({ name });
            continue;
          }
          const file = await (handle as FileSystemFileHandle).getFile().catch((error: unknown) => { if (absent(error)) return null; throw error; });
          if (file !== null) entries.push({ name, size: file.size, modified: file.lastModified });
        }
        return entries;
      } catch (error) {
        if (absent(error)) return [];
        throw failure(error);
      }
    },
    async put(path, chunks, { create }) {
      const { parts, name } = split(path);
      try {
        const folder = await folderAt(parts, true);
        return create ? await createFile(folder, name, chunks) : await writeFile(folder, name, chunks).then(() => "written" as const);
      } catch (error) {
        throw failure(error);
      }
    },
    async delete(path) {
      const { parts, name } = split(path);
      try {
        await (await folderAt(parts, false)).removeEntry(name);
      } catch (error) {
        if (!absent(error)) throw failure(error);
      }
    },
  };
}

/** The bytes appear when the stream is closed, all at once. */
async function writeFile(folder: FileSystemDirectoryHandle, name: string, chunks: Uint8Array[]): Promise<FileSystemFileHandle> {
  const file = await folder.getFileHandle(name, { create: true });
  let stream: FileSystemWritableFileStream | undefined;
  try {
    stream = await file.createWritable();
    for (const chunk of chunks) await stream.write(chunk as Uint8Array<ArrayBuffer>);
    await stream.close();
  } catch (error) {
    await stream?.abort().catch(() => undefined);
    // The handle alone made an empty file, where there was none. No object is empty.
    if (await file.getFile().then(({ size }) => size === 0, () => false)) await folder.removeEntry(name).catch(() => undefined);
    throw error;
  }
  return file;
}

/** Written under a name of its own first: a handle to a name makes an empty file, which nobody may mistake for the object. */
async function createFile(folder: FileSystemDirectoryHandle, name: string, chunks: Uint8Array[]): Promise<"written" | "exists"> {
  const { locks } = globalThis.navigator ?? {};
  if (locks === undefined) throw Object.assign(new Error("without Web Locks (https or localhost) nothing can be created safely"), { status: 501 });
  const temporary = `.whetstone-${crypto.randomUUID()}.tmp`;
  const file = await writeFile(folder, temporary, chunks);
  const movable = file as Movable;
  try {
    // By the file's name alone: the same file may be reached from folders of different depth. A name shared by others only waits longer.
    return await locks.request(`whetstone:${name}`, async () => {
      if (await folder.getFileHandle(name).then(() => true, (error: unknown) => { if (absent(error)) return false; throw error; })) return "exists" as const;
      if (movable.move !== undefined) {
        await movable.move(folder, name);
        return "written" as const;
      }
      await writeFile(folder, name, chunks);
      return "written" as const;
    });
  } finally {
    await folder.removeEntry(temporary).catch(() => undefined); // moved away
  }
}

function entriesOf(folder: FileSystemDirectoryHandle): AsyncIterable<[string, FileSystemHandle]> {
  return (folder as unknown as { entries(): AsyncIterable<[string, FileSystemHandle]> }).entries();
}

function absent(error: unknown): boolean {
  return (error as DOMException | null)?.name === "NotFoundError";
}

function failure(error: unknown): Error {
  const { name, message } = error as DOMException;
  if (typeof (error as { status?: unknown }).status === "number") return error as Error;
  const status: Record<string, number> = {
    NotAllowedError: 403, SecurityError: 403, QuotaExceededError: 507, NoModificationAllowedError: 503, TypeMismatchError: 409, InvalidStateError: 503,
  };
  return Object.assign(new Error(`${name}: ${message}`), { status: status[name] ?? 500 });
}
