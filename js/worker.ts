// The script of a browser's module worker.
import "./browser.js";
import { serveTasks } from "./worker-core.js";

interface WorkerScope {
  postMessage(message: unknown, transfer: Transferable[]): void;
  addEventListener(type: "message", listener: (event: MessageEvent<unknown>) => void): void;
}

const scope = globalThis as unknown as WorkerScope;
const receive = serveTasks({ post: (message, transfer) => scope.postMessage(message, transfer ?? []) });
scope.addEventListener("message", (event) => receive(event.data));
