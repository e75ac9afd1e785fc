// One instance of the engine on this thread: starting it, calling it, and what happens when it traps.
import { WhetstoneError } from "./errors.js";
import { compile, platform } from "./platform.js";
import type { Changed } from "./types.js";
import type { Glue, WasmSource, WorkerSource } from "./platform.js";

/** Options of {@link init}. */
export interface InitOptions {
  /** The engine, where it is not beside the package's own files (a bundler that copies no assets, an edge function). */
  wasm?: WasmSource;
  /** The worker script, likewise. */
  worker?: WorkerSource;
}

interface Pending {
  /** What a crash in the middle of it leaves behind. */
  changed: Changed;
  resolve(value: unknown): void;
  reject(error: WhetstoneError): void;
  done(): void;
}

/** @internal */
export class Engine {
  readonly #glue: Glue;
  readonly #pending = new Map<number, Pending>();
  #crash: WhetstoneError | null = null;

  private constructor(glue: Glue) {
    this.#glue = refusing(glue);
  }

  static async start(module: WebAssembly.Module, generation = 0): Promise<Engine> {
    const glue = await platform().loadGlue(generation);
    try {
      await glue.default({ module_or_path: module });
      const engine = new Engine(glue);
      glue.setHost({
        schedule: (id) => queueMicrotask(() => engine.#poll(id)),
        settle: (id, ok, value) => engine.#settle(id, ok, value),
        panicked: (message) => engine.#crashed(message),
      });
      return engine;
    } catch (error) {
      if (error instanceof WebAssembly.RuntimeError) throw crash(String(error));
      throw error;
    }
  }

  /** The error every call gets once the engine has trapped; `null` while it is well. */
  get crash(): WhetstoneError | null {
    return this.#crash;
  }

  /** Starts an asynchronous export and waits for its outcome; the signal drops the work at its next await. */
  async call<T>(start: (glue: Glue) => number, signal?: AbortSignal, changed: Changed = "nothing"): Promise<T> {
    if (signal?.aborted) throw aborted();
    const id = this.sync(start);
    return new Promise<T>((resolve, reject) => {
      const onAbort = (): void => {
        if (!this.#pending.delete(id)) return;
        this.sync((glue) => glue.cancelTask(id));
        reject(aborted());
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#pending.set(id, {
        changed,
        resolve: resolve as (value: unknown) => void,
        reject,
        done: () => signal?.removeEventListener("abort", onAbort),
      });
    });
  }

  /** A synchronous export. */
  sync<T>(run: (glue: Glue) => T): T {
    if (this.#crash !== null) throw this.#crash;
    try {
      return run(this.#glue);
    } catch (error) {
      if (isErrorLike(error)) throw WhetstoneError.from(error);
      throw this.#crashed(String(error));
    }
  }

  // Futures are polled from here and nowhere else, so that a trap inside one is caught here instead of ending the process.
  #poll(id: number): void {
    if (this.#crash !== null) return;
    try {
      this.#glue.pollTask(id);
    } catch (error) {
      this.#crashed(String(error));
    }
  }

  #settle(id: number, ok: boolean, value: unknown): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return; // aborted meanwhile
    this.#pending.delete(id);
    pending.done();
    if (ok) pending.resolve(value);
    else pending.reject(WhetstoneError.from(value));
  }

  /** Rejects whatever was waiting. The first message stays: it is the panic's own, the trap after it says only "unreachable". */
  #crashed(message: string): WhetstoneError {
    if (this.#crash === null) {
      this.#crash = crash(message);
      for (const pending of this.#pending.values()) {
        pending.done();
        const { code, message: text, detail } = this.#crash;
        pending.reject(new WhetstoneError(code, text, detail, pending.changed));
      }
      this.#pending.clear();
    }
    return this.#crash;
  }
}

/** The core engine goes without some exports of the full one: whoever asks for one hears what to import instead. */
function refusing(glue: Glue): Glue {
  return new Proxy(glue, {
    get(exports, name) {
      const found: unknown = Reflect.get(exports, name);
      if (found !== undefined) return found;
      const what = String(name).replace(/^table/, "").replace(/^./, (first) => first.toLowerCase());
      throw new WhetstoneError("UNSUPPORTED_FEATURE", `${what} is not in the core engine: import "whetstone" instead of "whetstone/core"; nothing was changed`, { what });
    },
  });
}

/** @internal */
export function aborted(): WhetstoneError {
  return new WhetstoneError("ABORTED", "the signal fired; nothing was committed");
}

function crash(reason: string): WhetstoneError {
  return new WhetstoneError("ENGINE_CRASHED", `the engine stopped: ${reason}. This instance is not used again; open the table anew.`, { reason });
}

/** Errors that Rust throws on purpose are documents; everything else that comes out of a call is a trap. */
function isErrorLike(error: unknown): boolean {
  return typeof error === "object" && error !== null && !(error instanceof Error && !(error instanceof WhetstoneError)) && "code" in error && "message" in error;
}

let options: InitOptions = {};
let module: Promise<WebAssembly.Module> | undefined;
let engine: Promise<Engine> | undefined;
let generation = 0;

/**
 * Loads the engine. Calling it is only needed to say where the engine or the worker script are, or to have the loading done early:
 * everything else calls it when needed.
 */
export async function init(given: InitOptions = {}): Promise<void> {
  if (given.wasm !== undefined && module !== undefined) throw new WhetstoneError("INVALID_ARGUMENT", "the engine is loaded already: call init first of all");
  options = { ...options, ...given };
  await currentEngine();
}

/** @internal The compiled engine: compiled once, posted to every worker. */
export function engineModule(): Promise<WebAssembly.Module> {
  module ??= (async () => compile(options.wasm ?? (await platform().defaultWasm())))().catch((error: unknown) => {
    module = undefined;
    throw WhetstoneError.from(error);
  });
  return module;
}

/** @internal */
export function workerSource(): WorkerSource | undefined {
  return options.worker;
}

/** @internal The engine of this thread; a fresh one when the last has crashed. */
export async function currentEngine(): Promise<Engine> {
  const running = await engine?.catch(() => undefined);
  if (running !== undefined && running.crash === null) return running;
  // Several callers may have waited for the same dead engine: only the first starts another.
  if (pendingStart === undefined) {
    engine = engineModule().then((compiled) => Engine.start(compiled, generation++));
    pendingStart = engine;
    void engine.catch(() => undefined).then(() => { pendingStart = undefined; });
  }
  return pendingStart;
}

let pendingStart: Promise<Engine> | undefined;
