// The script of a worker thread.
import { parentPort } from "node:worker_threads";
import "./node-platform.js";
import { serveTasks } from "./worker-core.js";

const port = parentPort;
if (port === null) throw new Error("this script runs as a worker only");
const receive = serveTasks({ post: (message, transfer) => port.postMessage(message, transfer ?? []) });
port.on("message", receive);
