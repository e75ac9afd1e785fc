// The page's side of the engine: calls become promises, a crash becomes an error, and a silent worker is replaced.

import type { CommittingEvent, ErrorDocument, ProgressEvent } from "./documents.js";
import type { CallName, Calls, Counted, FromWorker, ToWorker } from "./protocol.js";
import { spawnEngine } from "./spawn.js";

/** A failure as the page shows it. */
export class EngineFailure extends Error {
  constructor(readonly document: ErrorDocument) {
    super(document.message);
  }
}

export function failureOf(error: unknown): ErrorDocument {
  if (error instanceof EngineFailure) return error.document;
  const message = error instanceof Error ? error.message : String(error);
  return { code: "INTERNAL", message, detail: {}, changed: "nothing" };
}

interface Pending {
  name: CallName;
  resolve: (value: never) => void;
  reject: (error: unknown) => void;
  progress: ((event: ProgressEvent) => void) | null;
  rows: ((rows: number, total: number) => void) | null;
  committing: ((event: CommittingEvent) => void) | null;
  forget: () => void;
}

/** Calls that write. An abort waits until they say what they left behind, and a crash may have left something. */
const WRITING: ReadonlySet<CallName> = new Set(["run", "sandboxAct", "sandboxMake"] as const);

/** Time a cancelled run has to clear away what it uploaded before its worker is replaced. The page does not wait for it. */
const CLEAR_UP_MS = 8000;

export class EngineClient {
  #worker: Worker | null = null;
  #pending = new Map<number, Pending>();
  #next = 1;
  /** Rises whenever a worker is given up: the table handles it held are gone. */
  generation = 0;
  onRequests: (counts: Counted) => void = () => undefined;

  /**
   * Calls the engine. An aborted call is rejected at once; only one that writes is waited for a little.
   */
  call<N extends CallName>(
    name: N,
    argument: Calls[N]["argument"],
    options: {
      signal?: AbortSignal; progress?: (event: ProgressEvent) => void; rows?: (rows: number, total: number) => void; committing?: (event: CommittingEvent) => void;
    } = {},
  ): Promise<Calls[N]["answer"]> {
    const worker = this.#start();
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      const { signal } = options;
      let timer: ReturnType<typeof setTimeout> | undefined;
      const abort = () => {
        this.#post(worker, { type: "abort", id });
        if (WRITING.has(name)) timer = setTimeout(() => this.#giveUp(id), CLEAR_UP_MS);
        else this.#forget(id);
      };
      const forget = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
      };
      const { progress = null, rows = null, committing = null } = options;
      this.#pending.set(id, { name, resolve: resolve as (value: never) => void, reject, progress, rows, committing, forget });
      this.#post(worker, { type: "call", id, name, argument });
      if (signal?.aborted) abort();
      else signal?.addEventListener("abort", abort, { once: true });
    });
  }

  #post(worker: Worker, message: ToWorker): void {
    if (worker === this.#worker) worker.postMessage(message);
  }

  #start(): Worker {
    if (this.#worker) return this.#worker;
    const worker = spawnEngine();
    this.#worker = worker;
    worker.onmessage = (event: MessageEvent<FromWorker>) => this.#receive(event.data);
    worker.onerror = (event) => {
      event.preventDefault();
      if (worker !== this.#worker) return;
      this.#replace({
        code: "ENGINE_CRASHED",
        message: `The engine stopped: ${event.message || "its worker could not be started"}.`,
        detail: {},
        changed: "unknown",
      });
    };
    return worker;
  }

  #receive(message: FromWorker): void {
    if (message.type === "requests") {
      this.onRequests(message.counts);
      return;
    }
    const pending = this.#pending.get(message.id);
    if (!pending) return;
    if (message.type === "committing") {
      pending.committing?.(message.event);
      if (this.#worker) this.#post(this.#worker, { type: "kept", id: message.id });
      return;
    }
    if (message.type === "progress") {
      pending.progress?.(message.event);
      return;
    }
    if (message.type === "rows") {
      pending.rows?.(message.rows, message.rows_total);
      return;
    }
    this.#pending.delete(message.id);
    pending.forget();
    if (message.type === "answer") pending.resolve(message.value as never);
    else {
      pending.reject(new EngineFailure(message.error));
      // After a trap the instance must not be used again, and whatever else it was asked will never be answered. A pool's workers that
      // crashed, however often, are another thing: this engine is well, and may be all that holds a table in memory.
      if (message.error.code === "ENGINE_CRASHED" && !("attempts" in message.error.detail)) this.#replace(message.error);
    }
  }

  /** Nobody waits for the answer any more. */
  #forget(id: number): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    pending?.forget();
    pending?.reject(new EngineFailure({ code: "ABORTED", message: "Cancelled.", detail: {}, changed: "nothing" }));
  }

  #giveUp(id: number): void {
    if (!this.#pending.has(id)) return;
    this.#replace({
      code: "ABORTED",
      message: "Cancelled. The engine did not answer and was restarted, so files that no version names may be left; if the commit had begun, reloading the table shows whether it was written.",
      detail: {},
      changed: "unknown",
    });
  }

  /** Ends the worker and rejects everything it still owed. The next call starts a new one. */
  #replace(error: ErrorDocument): void {
    this.#worker?.terminate();
    this.#worker = null;
    this.generation += 1;
    const owed = [...this.#pending.values()];
    this.#pending.clear();
    for (const pending of owed) {
      pending.forget();
      const changed = WRITING.has(pending.name) ? error.changed : "nothing";
      pending.reject(new EngineFailure({ ...error, changed }));
    }
  }
}
