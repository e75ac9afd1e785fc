// Progress of a job on stderr: a bar on a terminal, lines elsewhere.
import type { ProgressEvent } from "../types.js";
import { count } from "./text.js";

const BAR = 24;
const REDRAW_MS = 80;

/** Where progress goes; `end` leaves the terminal clean. */
export interface Progress {
  event(event: ProgressEvent): void;
  end(): void;
}

export function progress(stream: NodeJS.WriteStream, quiet: boolean): Progress {
  if (quiet) return { event: () => undefined, end: () => undefined };
  return stream.isTTY ? bar(stream) : lines(stream);
}

function bar(stream: NodeJS.WriteStream): Progress {
  const tasks = new Map<number, { rows: number; total: number; state: ProgressEvent["state"] }>();
  let drawn = 0;
  const draw = (text: string): void => {
    stream.write(`\r\x1b[K${text.slice(0, Math.max(20, (stream.columns ?? 80) - 1))}`);
  };
  return {
    event(event) {
      if ((event.phase !== "build" && event.phase !== "rewrite") || event.task === undefined) return draw(event.phase === "commit" ? "committing" : "");
      tasks.set(event.task, { rows: event.rows, total: event.rows_total, state: event.state });
      const now = performance.now();
      if (event.state === "running" && now - drawn < REDRAW_MS) return;
      drawn = now;
      const all = [...tasks.values()];
      const rows = all.reduce((sum, task) => sum + task.rows, 0);
      const total = all.reduce((sum, task) => sum + task.total, 0);
      const full = total === 0 ? 0 : Math.floor((BAR * rows) / total);
      const done = all.filter((task) => task.state === "done").length;
      draw(`[${"#".repeat(full)}${".".repeat(BAR - full)}] ${count(rows)} of ${count(total)} rows, ${done} of ${event.tasks} ${event.phase === "rewrite" ? "groups rewritten" : "segments built"}`);
    },
    end: () => draw(""),
  };
}

function lines(stream: NodeJS.WriteStream): Progress {
  const said = new Map<number, string>();
  return {
    event(event) {
      if (event.phase === "commit") stream.write("committing\n");
      if ((event.phase !== "build" && event.phase !== "rewrite") || event.task === undefined || event.state === "waiting" || said.get(event.task) === event.state) return;
      said.set(event.task, event.state);
      const worker = event.worker === undefined ? "" : ` by worker ${event.worker + 1}`;
      stream.write(`${event.phase === "rewrite" ? "group" : "segment"} ${event.task + 1} of ${event.tasks}: ${event.state}${worker}, ${count(event.rows_total)} rows\n`);
    },
    end: () => undefined,
  };
}
