// What differs between Node, browsers and workerd, behind one interface. Each entry point of the package sets it once.
import { WhetstoneError } from "./errors.js";
import type { StoreCallbacks } from "./stores.js";

/** @internal The engine's exports. */
export type Glue = typeof import("./whetstone.js");

/** Something that can be compiled to the engine: a module, its bytes, where they are, or a function that gives one of these. */
export type WasmSource =
  | WebAssembly.Module | BufferSource | Response | URL | string
  | (() => WasmSource | Promise<WasmSource>);

/** Where a worker's script is, or a function that makes a worker (a `Worker`, or in Node one of `node:worker_threads`). */
export type WorkerSource = URL | string | (() => object);

/** @internal One worker, whichever kind. */
export interface WorkerPort {
  post(message: unknown, transfer?: ArrayBuffer[]): void;
  onMessage(listener: (message: unknown) => void): void;
  /** The worker cannot go on: an uncaught error, a script that does not load, an exit nobody asked for. */
  onError(listener: (message: string) => void): void;
  terminate(): void;
  /** Whether the worker keeps the process alive. Does nothing in browsers. */
  hold(alive: boolean): void;
}

/** @internal */
export interface Platform {
  /** A fresh copy of the engine's exports: generation 0 first, another after every crash. */
  loadGlue(generation: number): Promise<Glue>;
  /** The engine that belongs to this package. */
  defaultWasm(): WasmSource | Promise<WasmSource>;
  /** Reads what a `file:` address or a path names; only where there are files. */
  readFile?(where: string | URL): Promise<Uint8Array<ArrayBuffer>>;
  createWorker?(source: WorkerSource | undefined): WorkerPort;
  parallelism(): number;
  /** The files of this machine, by absolute path without the first slash. */
  localFiles?(): StoreCallbacks;
  /** Turns a path or `file:` address into an absolute path and the address of it; `null` when it is neither. */
  localPath?(target: string): { path: string; url: string } | null;
  environment(): Record<string, string | undefined>;
  /** Any number of listeners of this signal is meant, and no leak to warn of; only where somebody warns. */
  manyListeners?(signal: AbortSignal): void;
}

let current: Platform | undefined;

/** @internal */
export function setPlatform(platform: Platform): void {
  current = platform;
}

/** @internal */
export function platform(): Platform {
  if (current === undefined) throw new WhetstoneError("INTERNAL", "import the package by its name: no entry point has set the platform");
  return current;
}

/** @internal Compiles whatever a caller may give as the engine. */
export async function compile(source: WasmSource): Promise<WebAssembly.Module> {
  if (typeof source === "function") return compile(await source());
  if (source instanceof WebAssembly.Module) return source;
  if (typeof source === "string" || source instanceof URL) {
    const { readFile } = platform();
    try {
      if (readFile !== undefined && !/^(https?|data|blob):/.test(String(source))) return await WebAssembly.compile(await readFile(source));
      return await compile(await fetch(source));
    } catch (error) {
      if (error instanceof WhetstoneError) throw error;
      const name = String(source).split("/").pop();
      throw new WhetstoneError("INTERNAL", `the engine (${name}) could not be loaded: say where it is with init({ wasm })`, {}, "nothing", { cause: error });
    }
  }
  if (source instanceof Response) {
    if (!source.ok) throw new WhetstoneError("STORE_UNREACHABLE", `the engine could not be loaded from ${source.url}: status ${source.status}`);
    // compileStreaming insists on the media type, which many servers get wrong: take the bytes then.
    const type = source.headers.get("content-type")?.split(";", 1)[0]?.trim();
    return type === "application/wasm" ? WebAssembly.compileStreaming(source) : WebAssembly.compile(await source.arrayBuffer());
  }
  return WebAssembly.compile(source);
}
