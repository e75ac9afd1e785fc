/** A table in an R2 bucket, through the binding of a Cloudflare Worker. */
import { invalid } from "./errors.js";
import { joinChunks, operationsStore } from "./stores.js";
import type { HostEntry, Store } from "./stores.js";

interface R2ObjectLike {
  key: string;
  size: number;
  uploaded: Date;
}

/** What is used of an R2 binding (`env.BUCKET`). */
export interface R2BucketLike {
  get(key: string, options?: { range?: { offset: number; length: number } }): Promise<(R2ObjectLike & { arrayBuffer(): Promise<ArrayBuffer> }) | null>;
  head(key: string): Promise<R2ObjectLike | null>;
  put(key: string, value: Uint8Array, options?: { onlyIf?: { etagDoesNotMatch: string } }): Promise<R2ObjectLike | null>;
  delete(key: string): Promise<void>;
  list(options: { prefix: string; delimiter: string; cursor?: string }): Promise<{
    objects: R2ObjectLike[]; delimitedPrefixes: string[]; truncated: boolean; cursor?: string;
  }>;
}

/** Options of {@link r2Store}. */
export interface R2StoreOptions {
  /** Shown to people; `r2:` and the prefix when absent. */
  uri?: string;
}

/** The table at `prefix` of an R2 binding. */
export function r2Store(bucket: R2BucketLike, prefix: string, options: R2StoreOptions = {}): Store {
  if (typeof bucket?.get !== "function" || typeof bucket.list !== "function") throw invalid("r2Store takes the binding of a bucket, e.g. env.BUCKET");
  const root = prefix.replace(/^\/+|\/+$/g, "");
  const keyOf = (path: string): string => (root === "" ? path : `${root}/${path}`);
  return operationsStore({
    async get(path, range) {
      // An empty range cannot be asked for; the engine never does.
      const asked = range === null ? {} : { range: { offset: range.start, length: range.end - range.start } };
      const found = await bucket.get(keyOf(path), asked).catch(async (error: unknown) => {
        // A range beyond the end is an exception, of one kind or another.
        const object = range === null ? null : await bucket.head(keyOf(path));
        if (range === null || object === null || range.start < object.size) throw failure(error);
        return { size: object.size, uploaded: object.uploaded, arrayBuffer: async () => new ArrayBuffer(0) };
      });
      return found === null ? null : { data: new Uint8Array(await found.arrayBuffer()), size: found.size, modified: found.uploaded.getTime() };
    },
    async list(folder) {
      const below = folder === "" ? (root === "" ? "" : `${root}/`) : `${keyOf(folder)}/`;
      const entries: HostEntry[] = [];
      let cursor: string | undefined;
      do {
        const page = await bucket.list({ prefix: below, delimiter: "/", ...(cursor === undefined ? {} : { cursor }) });
        for (const { key, size, uploaded } of page.objects) entries.push({ name: key.slice(below.length), size, modified: uploaded.getTime() });
        for (const folderKey of page.delimitedPrefixes) entries.push({ name: folderKey.slice(below.length).replace(/\/$/, "") });
        cursor = page.truncated ? page.cursor : undefined;
      } while (cursor !== undefined);
      return entries;
    },
    async put(path, chunks, { create }) {
      const bytes = joinChunks(chunks);
      // A condition that does not hold is no exception but the answer null.
      const written = await bucket.put(keyOf(path), bytes, create ? { onlyIf: { etagDoesNotMatch: "*" } } : {}).catch((error: unknown) => {
        throw failure(error);
      });
      return written === null ? "exists" : "written";
    },
    delete: (path) => bucket.delete(keyOf(path)),
  }, options.uri ?? `r2:${root}`, { spelling: "put with onlyIf: { etagDoesNotMatch: \"*\" }", loser: "null" }, undefined, true);
}

/** The binding says what went wrong in numbers at the end of its messages, e.g. `get: The requested range is not satisfiable (10039)`. */
function failure(error: unknown): Error {
  const message = error instanceof Error ? error.message : String(error);
  const code = /\((\d+)\)\s*$/.exec(message)?.[1];
  const status: Record<string, number> = { "10039": 416, "10058": 429, "10043": 503, "100100": 413 };
  return Object.assign(new Error(message), { status: status[code ?? ""] ?? 500 });
}
