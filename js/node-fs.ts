// A folder of this machine as a host store.
import { randomUUID } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { link, mkdir, open, readdir, rename, rmdir, stat, unlink } from "node:fs/promises";
import path from "node:path";
import type { ChunksInTurn, FolderOperations, HostEntry } from "./stores.js";

/** An error of the file system as a host store reports it: an HTTP status of the same meaning, and no path of this machine. */
function failure(error: unknown, what: string): Error {
  const { code } = error as NodeJS.ErrnoException;
  const status: Record<string, number> = { EACCES: 403, EPERM: 403, EROFS: 403, ENOSPC: 507, EDQUOT: 507, EMFILE: 503, ENFILE: 503, EISDIR: 409, ENAMETOOLONG: 414 };
  return Object.assign(new Error(`${what}: ${code ?? String(error)}`), { status: status[code ?? ""] ?? 500 });
}

function absent(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ENOTDIR";
}

/** A longer range is not read before the size of its file is known: what it asks for would be allocated. */
const AT_ONCE = 64 << 20;

/** Bytes `start` to `end` of a file, fewer when it ends before. */
async function fill(file: FileHandle, start: number, end: number): Promise<Uint8Array> {
  // Not cleared first: what is not read is cut off.
  const data = Buffer.allocUnsafeSlow(Math.max(end - start, 0));
  let got = 0;
  while (got < data.length) {
    const { bytesRead } = await file.read(data, got, data.length - got, start + got);
    if (bytesRead === 0) break; // it became shorter while it was read
    got += bytesRead;
  }
  return new Uint8Array(data.buffer, 0, got);
}

/** @internal Operations on the files below `folder`. */
export function folderStore(folder: string): FolderOperations {
  const locate = (name: string): string => {
    const parts = name.split("/");
    // The engine never asks for these; a table's manifest might name anything.
    if (parts.some((part) => part === ".." || part === "." || part.includes("\0"))) throw Object.assign(new Error("no path inside the table"), { status: 400 });
    return path.join(folder, ...parts);
  };
  return {
    chunksInTurn: true,

    async get(name, range) {
      const file = await open(locate(name), "r").catch((error: unknown) => {
        if (absent(error)) return null;
        throw failure(error, name);
      });
      if (file === null) return null;
      try {
        // A usual range is read while its file is looked at: each round trip to the thread that reads costs as much as a megabyte.
        const asked = range && range.end - range.start <= AT_ONCE ? fill(file, range.start, range.end) : null;
        const [{ size, mtimeMs }, early] = await Promise.all([file.stat(), asked]);
        const data = early ?? await fill(file, Math.min(range?.start ?? 0, size), Math.min(range?.end ?? size, size));
        return { data, size, modified: Math.floor(mtimeMs) };
      } catch (error) {
        throw failure(error, name);
      } finally {
        // Nobody waits for it: there is nothing that it could still spoil.
        file.close().catch(() => undefined);
      }
    },

    async list(name) {
      const at = name === "" ? folder : locate(name);
      let entries;
      try {
        entries = await readdir(at, { withFileTypes: true });
      } catch (error) {
        if (absent(error)) return [];
        throw failure(error, name);
      }
      const listed = await Promise.all(entries.map(async (entry): Promise<HostEntry | null> => {
        if (entry.isDirectory()) return { name: entry.name };
        try {
          const { size, mtimeMs } = await stat(path.join(at, entry.name));
          return { name: entry.name, size, modified: Math.floor(mtimeMs) };
        } catch {
          return null; // gone meanwhile
        }
      }));
      return listed.filter((entry) => entry !== null);
    },

    async put(name, chunks, { create }) {
      const target = locate(name);
      // In the folder of the target, so that both are on one file system; hidden, and no name that the format knows.
      const temporary = path.join(path.dirname(target), `.whetstone-${randomUUID()}.tmp`);
      try {
        const file = await openIn(path.dirname(target), temporary);
        try {
          for (const chunk of eachChunk(chunks)) await writeAll(file, chunk);
          await file.datasync();
        } finally {
          await file.close();
        }
        if (!create) await rename(temporary, target);
        else await link(temporary, target);
        return "written";
      } catch (error) {
        if (create && (error as NodeJS.ErrnoException).code === "EEXIST") return "exists";
        await unlink(temporary).catch(() => undefined);
        await leave(path.dirname(target));
        throw failure(error, name);
      } finally {
        await unlink(temporary).catch(() => undefined); // renamed away, or never made
      }
    },

    async delete(name) {
      const target = locate(name);
      try {
        await unlink(target);
        await leave(path.dirname(target));
      } catch (error) {
        if (absent(error)) return;
        // An empty folder goes like an object; one that is not empty stays.
        const isFolder = ["EISDIR", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "") && (await rmdir(target).then(() => true, () => false));
        if (!isFolder) throw failure(error, name);
        made.delete(target);
        await leave(path.dirname(target));
      }
    },
  };
}

/** Folders that this thread made, the oldest forgotten: what was written and taken away again leaves none of them empty. */
const made = new Set<string>();
const REMEMBERED = 4096;

/** Removes a folder that we made if nothing is in it, and so on upwards. */
async function leave(folder: string): Promise<void> {
  for (let at = folder; made.has(at); at = path.dirname(at)) {
    if (!(await rmdir(at).then(() => true, () => false))) return;
    made.delete(at);
  }
}

/** Makes a file in a folder that need not be there. Somebody whose own write failed may take the folder away between the two steps. */
async function openIn(folder: string, file: string): Promise<FileHandle> {
  for (let attempt = 1; ; attempt += 1) {
    await makeFolder(folder);
    try {
      return await open(file, "wx");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT" || attempt === 5) throw error;
    }
  }
}

/** Not `mkdir` with `recursive`: on a file system that is read-only, that reports a missing folder. */
async function makeFolder(folder: string): Promise<void> {
  const once = (): Promise<void> => mkdir(folder).then(() => {
    made.add(folder);
    const [oldest] = made;
    if (made.size > REMEMBERED && oldest !== undefined) made.delete(oldest);
  }, (error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  });
  await once().catch(async (error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || path.dirname(folder) === folder) throw error;
    await makeFolder(path.dirname(folder));
    await once();
  });
}

function* eachChunk(chunks: Uint8Array[] | ChunksInTurn): Generator<Uint8Array> {
  if (typeof chunks !== "function") return yield* chunks;
  for (let chunk = chunks(); chunk !== undefined; chunk = chunks()) yield chunk;
}

async function writeAll(file: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.length;) {
    const { bytesWritten } = await file.write(chunk, at, chunk.length - at);
    at += bytesWritten;
  }
}
