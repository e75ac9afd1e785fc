// What a pool and its workers say to each other. Everything is plain data; functions stay on the owning thread and are asked for.
import type { ErrorDocument } from "./errors.js";
import type { StoreCallbacks, StoreDescriptor } from "./stores.js";
import type { PoolResult, PoolTask } from "./build.js";
import type { RequestCounts, RequestEvent } from "./types.js";

/** @internal A function of a store that a worker may ask its owner for. */
export type CallbackName = keyof StoreCallbacks;

/** @internal A task and everything it needs. */
export interface BuildOrder {
  task: PoolTask;
  descriptor: StoreDescriptor;
  /** Functions the store has on the owning thread. */
  callbacks: CallbackName[];
  /** The manifest the task is pinned to; absent: the worker reads it. */
  manifest: Uint8Array<ArrayBuffer> | undefined;
  reportRequests: boolean;
}

/** @internal */
export type ToWorker =
  | { type: "init"; module: WebAssembly.Module }
  | { type: "build"; id: number; order: BuildOrder }
  | { type: "abort"; id: number }
  | { type: "reply"; call: number; value?: unknown; error?: ReplyError };

/** @internal */
export type FromWorker =
  | { type: "ready" }
  | { type: "start-failed"; error: ErrorDocument }
  | { type: "uuid"; id: number; uuid: string }
  | { type: "progress"; id: number; rows: number }
  | { type: "request"; id: number; event: RequestEvent }
  /** `requests`: what the task asked of the store. */
  | { type: "built"; id: number; segment: PoolResult; requests: RequestCounts }
  /** `crashed` in the error's code: the engine of this worker must not be used again. */
  | { type: "failed"; id: number; error: ErrorDocument }
  | { type: "ask"; id: number; call: number; name: CallbackName; arguments: unknown[] };

/** @internal A rejection of a callback, as it crosses threads. */
export interface ReplyError {
  message: string;
  status?: number;
}
