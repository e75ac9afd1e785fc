// One worker of a pool, and the task it is on.
import type { CountedBuild } from "./build.js";
import { aborted } from "./engine.js";
import { WhetstoneError } from "./errors.js";
import type { ErrorDocument } from "./errors.js";
import type { WorkerPort } from "./platform.js";
import type { BuildOrder, CallbackName, FromWorker, ReplyError, ToWorker } from "./protocol.js";
import type { StoreCallbacks } from "./stores.js";
import type { RequestEvent } from "./types.js";

/** Time a worker has to answer an abort before it is ended. The whole answer to the caller takes at most 200 ms. */
const ABORT_GRACE_MS = 150;

/** @internal The worker is gone, with whatever it was doing. The task itself may be fine: it can be tried once more. */
export class WorkerLost extends Error {}

/** An engine that trapped takes its worker with it. */
function failureOf(error: ErrorDocument): Error {
  return error.code === "ENGINE_CRASHED" ? new WorkerLost(String(error.detail["reason"] ?? error.message)) : WhetstoneError.from(error);
}

/** @internal */
export interface BuildCallbacks {
  /** Functions of the store, which run on this thread. */
  store: StoreCallbacks | undefined;
  onUuid(uuid: string): void;
  onProgress(rows: number): void;
  onRequest(event: RequestEvent): void;
}

interface Running {
  id: number;
  callbacks: BuildCallbacks;
  resolve(built: CountedBuild): void;
  reject(error: Error): void;
}

/** @internal */
export class PoolWorker {
  readonly number: number;
  readonly #port: WorkerPort;
  readonly #ready: Promise<void>;
  #running: Running | null = null;
  #lost: Error | null = null;
  #next = 1;
  #fail!: (error: Error) => void;

  constructor(number: number, port: WorkerPort, module: WebAssembly.Module) {
    this.number = number;
    this.#port = port;
    port.hold(false);
    this.#ready = new Promise<void>((resolve, reject) => {
      this.#fail = (error) => {
        if (this.#lost === null) {
          this.#lost = error;
          port.terminate();
        }
        reject(error);
        this.#running?.reject(error);
      };
      port.onMessage((data) => {
        const message = data as FromWorker;
        if (message.type === "ready") resolve();
        else if (message.type === "start-failed") this.#fail(failureOf(message.error));
        else this.#receive(message);
      });
      port.onError((message) => this.#fail(new WorkerLost(message)));
    });
    this.#ready.catch(() => undefined); // whoever builds on it sees it
    this.#post({ type: "init", module });
  }

  /** True when it must be replaced. */
  get lost(): boolean {
    return this.#lost !== null;
  }

  end(): void {
    this.#fail(aborted());
  }

  /** Runs one task. Rejects with `WorkerLost` when the worker is lost on the way, and within 150 ms of the signal. */
  async build(order: BuildOrder, callbacks: BuildCallbacks, signal: AbortSignal): Promise<CountedBuild> {
    if (signal.aborted) throw aborted();
    this.#port.hold(true);
    let onAbort = (): void => undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      return await new Promise<CountedBuild>((resolve, reject) => {
        const id = this.#next++;
        const running: Running = { id, callbacks, resolve, reject };
        let posted = false;
        onAbort = () => {
          if (!posted) return reject(aborted()); // it may go on starting for the next task
          timer = setTimeout(() => this.#fail(aborted()), ABORT_GRACE_MS);
          this.#post({ type: "abort", id });
        };
        signal.addEventListener("abort", onAbort, { once: true });
        this.#ready.then(() => {
          if (this.#lost !== null) return reject(this.#lost);
          if (signal.aborted) return;
          this.#running = running;
          posted = true;
          this.#post({ type: "build", id, order });
        }).catch(reject);
      });
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      this.#running = null;
      this.#port.hold(false);
    }
  }

  #post(message: ToWorker): void {
    if (this.#lost === null) this.#port.post(message);
  }

  #receive(message: Exclude<FromWorker, { type: "ready" | "start-failed" }>): void {
    const running = this.#running;
    if (running === null || message.id !== running.id) return; // of an attempt that was given up
    switch (message.type) {
      case "uuid": return running.callbacks.onUuid(message.uuid);
      case "progress": return running.callbacks.onProgress(message.rows);
      case "request": return running.callbacks.onRequest({ ...message.event, worker: this.number });
      case "built": return running.resolve({ segment: message.segment, requests: message.requests });
      case "failed": {
        const failure = failureOf(message.error);
        if (failure instanceof WorkerLost) this.#fail(failure);
        else running.reject(failure);
        return;
      }
      case "ask": void this.#answer(running.callbacks.store, message.call, message.name, message.arguments);
    }
  }

  async #answer(store: StoreCallbacks | undefined, call: number, name: CallbackName, args: unknown[]): Promise<void> {
    try {
      const callback = store?.[name] as ((...args: unknown[]) => Promise<unknown>) | undefined;
      if (callback === undefined) throw new Error(`the store has no ${name}`);
      this.#post({ type: "reply", call, value: await callback(...args) });
    } catch (error) {
      const reply: ReplyError = { message: error instanceof Error ? error.message : String(error) };
      const status = (error as { status?: unknown } | null)?.status;
      if (typeof status === "number") reply.status = status;
      this.#post({ type: "reply", call, error: reply });
    }
  }
}
