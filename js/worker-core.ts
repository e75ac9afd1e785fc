// The inside of a worker: one engine, one task at a time, and questions to the owning thread for what only it can do.
import { countedBuildOn } from "./build.js";
import { Engine } from "./engine.js";
import { WhetstoneError } from "./errors.js";
import type { BuildOrder, CallbackName, FromWorker, ReplyError, ToWorker } from "./protocol.js";
import { callbacksOf } from "./stores.js";
import type { StoreCallbacks } from "./stores.js";

/** Progress is worth a message this often. */
const PROGRESS_MS = 40;

/** @internal */
export interface WorkerSide {
  post(message: FromWorker, transfer?: ArrayBuffer[]): void;
}

/** @internal Answers what a pool sends. */
export function serveTasks(side: WorkerSide): (message: unknown) => void {
  let engine: Promise<Engine> | undefined;
  const asked = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>();
  const running = new Map<number, AbortController>();
  let calls = 0;

  const proxy = (id: number, names: CallbackName[]): StoreCallbacks | undefined => {
    if (names.length === 0) return undefined;
    return Object.fromEntries(names.map((name) => [name, (...args: unknown[]) => new Promise((resolve, reject) => {
      const call = calls++;
      asked.set(call, { resolve, reject });
      side.post({ type: "ask", id, call, name, arguments: args });
    })])) as StoreCallbacks;
  };

  const build = async (id: number, order: BuildOrder): Promise<void> => {
    const stop = new AbortController();
    running.set(id, stop);
    let said = 0;
    try {
      if (engine === undefined) throw new WhetstoneError("INTERNAL", "the worker was given a task before the engine");
      const built = await countedBuildOn(await engine, {
        task: order.task, descriptor: order.descriptor, manifest: order.manifest, signal: stop.signal,
        callbacks: callbacksOf(order.descriptor, proxy(id, order.callbacks)),
        onUuid: (uuid) => side.post({ type: "uuid", id, uuid }),
        onProgress: (rows) => {
          const now = performance.now();
          if (now - said < PROGRESS_MS) return;
          said = now;
          side.post({ type: "progress", id, rows });
        },
        onRequest: order.reportRequests ? (event) => side.post({ type: "request", id, event }) : undefined,
      });
      side.post({ type: "built", id, ...built });
    } catch (error) {
      side.post({ type: "failed", id, error: WhetstoneError.from(error).toJSON() });
    } finally {
      running.delete(id);
    }
  };

  return (data) => {
    const message = data as ToWorker;
    switch (message.type) {
      case "init":
        engine = Engine.start(message.module);
        engine.then(
          () => side.post({ type: "ready" }),
          (error: unknown) => side.post({ type: "start-failed", error: WhetstoneError.from(error).toJSON() }),
        );
        return;
      case "build": void build(message.id, message.order); return;
      case "abort": running.get(message.id)?.abort(); return;
      case "reply": {
        const question = asked.get(message.call);
        asked.delete(message.call);
        if (message.error === undefined) question?.resolve(message.value);
        else question?.reject(replyError(message.error));
      }
    }
  };
}

function replyError({ message, status }: ReplyError): Error {
  return Object.assign(new Error(message), status === undefined ? {} : { status });
}
