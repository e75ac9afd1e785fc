// Single objects of a store, as the engine reads and writes them: what a store check is made of.
import type { Engine } from "./engine.js";
import { WhetstoneError } from "./errors.js";
import { callbacksOf } from "./stores.js";
import type { Store } from "./stores.js";
import type { RequestEvent } from "./types.js";

/** @internal What the engine knows of a store. */
export interface StoreInfo {
  uri: string;
  kind: "s3" | "azure" | "gcs" | "webdav" | "static" | "host" | "memory";
  /** Listings arrive in name order. */
  ordered: boolean;
  commits: "atomic" | "unproven" | "refused";
  why: string | null;
  /** The caller takes the risk (`unsafeCommits`). */
  anyway: boolean;
}

/** @internal */
export interface ListedObject {
  name: string;
  size: number;
  modified: number | null;
  etag: string | null;
}

/** @internal What became of a create-if-absent. */
export type Creation = { outcome: "created" | "exists" } | { outcome: "unclear"; error: WhetstoneError };

/** @internal One handle; each has its own six requests in flight. */
export class Objects {
  readonly #engine: Engine;
  readonly #id: number;
  readonly #signal: AbortSignal | undefined;

  constructor(engine: Engine, store: Store, options: { signal?: AbortSignal | undefined; onRequest?: (event: RequestEvent) => void; headers?: Record<string, string> } = {}) {
    const extra = options.headers === undefined ? {} : { headers: { ...store.descriptor.headers, ...options.headers }, tell_headers: true };
    const descriptor = { ...store.descriptor, ...extra };
    this.#engine = engine;
    this.#signal = options.signal;
    const spec = { descriptor, callbacks: callbacksOf(store.descriptor, store.callbacks), onRequest: options.onRequest as ((event: unknown) => void) | undefined };
    this.#id = engine.sync((glue) => glue.openStore(spec));
  }

  info(): StoreInfo {
    return this.#engine.sync((glue) => glue.storeInfo(this.#id)) as StoreInfo;
  }

  get(path: string, start?: number, end?: number): Promise<Uint8Array> {
    return this.#engine.call((glue) => glue.storeGet(this.#id, path, start, end), this.#signal);
  }

  list(folder: string, max?: number): Promise<ListedObject[]> {
    return this.#engine.call((glue) => glue.storeList(this.#id, folder, max), this.#signal);
  }

  async put(path: string, data: Uint8Array): Promise<void> {
    await this.#engine.call((glue) => glue.storePut(this.#id, path, data, false), this.#signal);
  }

  async create(path: string, data: Uint8Array): Promise<Creation> {
    const [outcome, error] = await this.#engine.call<["created" | "exists" | "unclear", unknown]>((glue) => glue.storePut(this.#id, path, data, true), this.#signal);
    return outcome === "unclear" ? { outcome, error: WhetstoneError.from(error) } : { outcome };
  }

  /** Without the signal: clearing up goes on after an abort. */
  async delete(path: string): Promise<void> {
    await this.#engine.call((glue) => glue.storeDelete(this.#id, path));
  }

  close(): void {
    if (this.#engine.crash === null) this.#engine.sync((glue) => glue.closeStore(this.#id));
  }
}
