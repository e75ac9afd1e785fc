// Rows that the engine writes on this thread, counted, and ended when a signal fires.
import { aborted } from "./engine.js";
import type { ChangeOptions } from "./sandbox-types.js";

/** Time without a look at what else this thread has to do, such as the message that asks to end it. */
const BREATH_MS = 30;

/** @internal What the engine calls, and waits for, while it writes; nothing when nobody watches. */
export function countRows(
  rows_total: number, signal: AbortSignal | undefined, onProgress: ChangeOptions["onProgress"],
): ((rows: number) => Promise<void>) | undefined {
  if (signal === undefined && onProgress === undefined) return undefined;
  let breathed = performance.now();
  return async (rows) => {
    if (signal?.aborted) throw aborted();
    onProgress?.({ rows, rows_total });
    if (performance.now() - breathed < BREATH_MS) return;
    await new Promise((resolve) => { setTimeout(resolve); });
    breathed = performance.now();
    if (signal?.aborted) throw aborted();
  };
}
