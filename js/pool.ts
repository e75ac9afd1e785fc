/** A pool of workers that build segments and rewrite fragments. */
import { countedBuildOn, discard, filesOf, stagedOf, withStaged } from "./build.js";
import type { CountedBuild, PoolTask } from "./build.js";
import { aborted, currentEngine, engineModule, workerSource } from "./engine.js";
import { invalid, WhetstoneError } from "./errors.js";
import { compile, platform } from "./platform.js";
import type { WasmSource, WorkerSource } from "./platform.js";
import type { CallbackName } from "./protocol.js";
import { PoolWorker, WorkerLost } from "./slot.js";
import type { BuildCallbacks } from "./slot.js";
import { callbacksOf } from "./stores.js";
import type { StoreCallbacks, StoreDescriptor } from "./stores.js";
import type { ProgressEvent, RequestEvent } from "./types.js";

/** Of the 200 ms in which an abort is answered: what could not be removed by then is listed instead. */
const ABORT_ANSWER_MS = 185;
/** A job that failed by itself has more time to clear up. */
const CLEAN_UP_MS = 15_000;
/** Time for a host's store to end a write that nobody wants any more: after it, what was written is removed. */
const LAST_WRITE_MS = 10_000;
/** A task whose worker is lost is tried this often. */
const ATTEMPTS = 2;

/** Options of {@link WorkerPool}. */
export interface PoolOptions {
  /** Most workers at a time; the number of processors when absent. They are started when there is work for them. */
  size?: number;
  /** The engine for the workers, when it is another than this thread's. */
  module?: WasmSource;
  /** The worker script, or a function that makes workers. */
  worker?: WorkerSource;
}

/** @internal Work for a pool. */
export interface PoolJob {
  tasks: PoolTask[];
  descriptor: StoreDescriptor;
  callbacks: StoreCallbacks | undefined;
  /** The manifest of the version the tasks are pinned to. */
  manifest: Uint8Array<ArrayBuffer>;
  signal?: AbortSignal | undefined;
  onProgress?: ((event: ProgressEvent) => void) | undefined;
  onRequest?: ((event: RequestEvent) => void) | undefined;
}

/** @internal The part of a job that its tasks share while they run. */
interface JobState extends PoolJob {
  /** The store's functions on this thread. */
  local: StoreCallbacks | undefined;
  /** Every uuid an attempt has drawn. */
  uuids: Set<string>;
  stop: AbortController;
}

/**
 * Workers that build segments: `Worker`s in browsers, `worker_threads` in Node. The engine is compiled once and posted to each. A
 * pool the caller makes serves any number of jobs until it is closed; idle workers do not keep Node alive.
 */
export class WorkerPool {
  /** Most workers at a time. */
  readonly size: number;
  readonly #worker: WorkerSource | undefined;
  readonly #wasm: WasmSource | undefined;
  #module: Promise<WebAssembly.Module> | undefined;
  readonly #idle: PoolWorker[] = [];
  readonly #numbers: number[];
  readonly #waiting = new Set<() => void>();
  readonly #jobs = new Set<AbortController>();
  #closed = false;

  constructor(options: PoolOptions = {}) {
    const size = options.size ?? platform().parallelism();
    if (!Number.isInteger(size) || size < 1 || size > 1024) throw invalid(`the size of a pool is between 1 and 1024, not ${size}`);
    // Without workers this thread does one task at a time.
    this.size = platform().createWorker === undefined ? 1 : size;
    this.#worker = options.worker;
    this.#wasm = options.module;
    this.#numbers = Array.from({ length: this.size }, (_, i) => this.size - 1 - i);
  }

  /** Ends all workers; jobs in progress are rejected with `ABORTED`. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const job of this.#jobs) job.abort();
    for (const worker of this.#idle.splice(0)) worker.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** @internal Builds every task, or nothing: when one fails the others are stopped and what was uploaded is removed. */
  async run(job: PoolJob): Promise<CountedBuild[]> {
    if (this.#closed) throw invalid("the pool is closed");
    if (job.signal?.aborted) throw aborted();
    const { local, written } = followed(callbacksOf(job.descriptor, job.callbacks));
    const state: JobState = { ...job, local, uuids: new Set(), stop: new AbortController() };
    platform().manyListeners?.(state.stop.signal); // one for every task that waits
    let stoppedAt = 0;
    const onAbort = (): void => state.stop.abort();
    state.stop.signal.addEventListener("abort", () => { stoppedAt = performance.now(); });
    job.signal?.addEventListener("abort", onAbort, { once: true });
    this.#jobs.add(state.stop);
    let failure: WhetstoneError | undefined;
    const doubtful: string[] = [];
    const tasks = job.tasks.map((_, i) => this.#task(state, i).catch((error: unknown) => {
      const failed = WhetstoneError.from(error);
      doubtful.push(...stagedOf(failed));
      failure ??= failed;
      state.stop.abort();
      return null;
    }));
    try {
      const built = (await Promise.all(tasks)).filter((one) => one !== null);
      const wanted = new Set(failure === undefined ? built.map((one) => one.segment.uuid) : []);
      const abandoned = [...state.uuids].filter((uuid) => !wanted.has(uuid));
      const byCaller = job.signal?.aborted === true || this.#closed;
      const ms = byCaller ? Math.max(ABORT_ANSWER_MS - (performance.now() - stoppedAt), 1) : CLEAN_UP_MS;
      const discarded = await discard(job.descriptor, job.callbacks, job.tasks[0]?.branch ?? null, abandoned, ms, { files: filesOf(job.tasks), after: written() });
      if (failure !== undefined) throw withStaged(failure, discarded, doubtful);
      return built;
    } finally {
      this.#jobs.delete(state.stop);
      job.signal?.removeEventListener("abort", onAbort);
    }
  }

  async #task(job: JobState, index: number): Promise<CountedBuild> {
    const task = job.tasks[index];
    if (task === undefined) throw new WhetstoneError("INTERNAL", "no such task");
    const report = (state: ProgressEvent["state"], rows: number, worker?: number): void => {
      job.onProgress?.({
        phase: task.kind === "rewrite" ? "rewrite" : "build", task: index, tasks: job.tasks.length, state, rows, rows_total: task.rows, ...(worker === undefined ? {} : { worker }),
      });
    };
    report("waiting", 0);
    let lost = "";
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const worker = await this.#acquire(job.stop.signal);
      const number = worker?.number;
      try {
        report(attempt === 1 ? "running" : "retrying", 0, number);
        const callbacks: BuildCallbacks = {
          store: job.local,
          onUuid: (uuid) => job.uuids.add(uuid),
          onProgress: (rows) => report("running", rows, number),
          onRequest: (event) => job.onRequest?.(event),
        };
        const built = await (worker === null ? this.#here(job, task, callbacks) : worker.build({
          task, descriptor: job.descriptor, callbacks: Object.keys(job.callbacks ?? {}) as CallbackName[], manifest: job.manifest,
          reportRequests: job.onRequest !== undefined,
        }, callbacks, job.stop.signal));
        report("done", task.rows, number);
        return built;
      } catch (error) {
        const crashed = error instanceof WorkerLost || (error instanceof WhetstoneError && error.code === "ENGINE_CRASHED");
        if (!crashed) {
          report("failed", 0, number);
          throw error;
        }
        lost = error.message;
      } finally {
        this.#release(worker);
      }
    }
    report("failed", 0);
    const what = task.kind === "rewrite" ? "rewriting" : "building a segment over";
    throw new WhetstoneError("ENGINE_CRASHED", `${what} ${task.fragments.length} fragments stopped the engine ${ATTEMPTS} times: ${lost}`,
      { attempts: ATTEMPTS, fragments: task.fragments, reason: lost });
  }

  /** Without workers (an edge function) tasks run on this thread, one after the other. */
  async #here(job: JobState, task: PoolTask, callbacks: BuildCallbacks): Promise<CountedBuild> {
    return countedBuildOn(await currentEngine(), {
      task, descriptor: job.descriptor, callbacks: job.local, manifest: job.manifest, signal: job.stop.signal,
      onUuid: callbacks.onUuid, onProgress: callbacks.onProgress,
      onRequest: job.onRequest === undefined ? undefined : callbacks.onRequest,
    });
  }

  /** A free worker, a new one, or (null) this thread's turn where there are no workers. */
  async #acquire(signal: AbortSignal): Promise<PoolWorker | null> {
    const { createWorker } = platform();
    for (;;) {
      if (signal.aborted) throw aborted();
      const idle = this.#idle.pop();
      if (idle !== undefined && !idle.lost) return idle;
      if (idle !== undefined) this.#numbers.push(idle.number);
      else {
        const number = this.#numbers.pop();
        if (number !== undefined) {
          if (createWorker === undefined) return null;
          try {
            const module = await this.#compiled();
            return new PoolWorker(number, createWorker(this.#worker ?? workerSource()), module);
          } catch (error) {
            this.#numbers.push(number);
            throw error;
          }
        }
        await this.#turn(signal);
      }
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }

  #release(worker: PoolWorker | null): void {
    if (worker === null) this.#numbers.push(0);
    else if (this.#closed || worker.lost) {
      worker.end();
      this.#numbers.push(worker.number);
    } else this.#idle.push(worker);
    const [next] = this.#waiting;
    next?.();
  }

  #compiled(): Promise<WebAssembly.Module> {
    this.#module ??= this.#wasm === undefined ? engineModule() : compile(this.#wasm);
    this.#module.catch(() => { this.#module = undefined; });
    return this.#module;
  }
}

/** The functions of a store, and a wait for what is being written: a worker's files are written by this thread, though the worker ended. */
function followed(store: StoreCallbacks | undefined): { local: StoreCallbacks | undefined; written: () => Promise<void> } {
  const writing = new Set<Promise<unknown>>();
  const put = store?.put?.bind(store);
  const local = put === undefined ? store : {
    ...store,
    put: (...args: Parameters<typeof put>) => {
      const call = put(...args);
      const over = (): void => { writing.delete(call); };
      writing.add(call);
      call.then(over, over);
      return call;
    },
  };
  const written = async (): Promise<void> => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => { timer = setTimeout(resolve, LAST_WRITE_MS); });
    await Promise.race([Promise.allSettled([...writing]), late]);
    clearTimeout(timer);
  };
  return { local, written };
}
