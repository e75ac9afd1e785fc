// Running one build task on this thread.
import { aborted, currentEngine } from "./engine.js";
import type { Engine } from "./engine.js";
import { WhetstoneError } from "./errors.js";
import { callbacksOf, Store } from "./stores.js";
import type { StoreCallbacks, StoreDescriptor } from "./stores.js";
import type { BuiltRewrite, RewriteTask } from "./layout-types.js";
import type { BuildTask, BuiltSegment, RequestCounts, RequestEvent } from "./types.js";

/** Options of {@link buildSegment}. */
export interface BuildOptions {
  /** Stops the build; what it had uploaded is removed, or listed in the error. */
  signal?: AbortSignal;
  /** Rows done so far. */
  onProgress?: (progress: { rows: number; rows_total: number }) => void;
  onRequest?: (event: RequestEvent) => void;
}

/** @internal Work for one worker: a segment to build, or fragments to rewrite. */
export type PoolTask = BuildTask | RewriteTask;

/** @internal What comes of it. */
export type PoolResult = BuiltSegment | BuiltRewrite;

/** @internal */
export interface RawBuild {
  task: PoolTask;
  descriptor: StoreDescriptor;
  callbacks: StoreCallbacks | undefined;
  manifest: Uint8Array | undefined;
  signal?: AbortSignal | undefined;
  onUuid: (uuid: string) => void;
  onProgress: (rows: number) => void;
  onRequest: ((event: RequestEvent) => void) | undefined;
}

/** @internal */
export function buildOn(engine: Engine, build: RawBuild): Promise<PoolResult> {
  const spec = { descriptor: build.descriptor, callbacks: build.callbacks, onRequest: build.onRequest as ((event: unknown) => void) | undefined };
  const hooks = { onUuid: build.onUuid, onProgress: build.onProgress };
  return engine.call<PoolResult>((glue) => build.task.kind === "rewrite"
    ? glue.rewriteFragments(spec, build.task, build.manifest, hooks) : glue.buildSegment(spec, build.task, build.manifest, hooks), build.signal, "staged");
}

/** @internal A segment (or the files of rewritten fragments), and what it asked of the store. */
export interface CountedBuild {
  segment: PoolResult;
  requests: RequestCounts;
}

/** @internal {@link buildOn}, counting requests. */
export async function countedBuildOn(engine: Engine, build: RawBuild): Promise<CountedBuild> {
  const requests: RequestCounts = { count: 0, bytes: 0, bytes_written: 0 };
  const onRequest = (event: RequestEvent): void => {
    requests.count += 1;
    requests.bytes += event.bytes;
    requests.bytes_written += event.bytes_written;
    build.onRequest?.(event);
  };
  return { segment: await buildOn(engine, { ...build, onRequest }), requests };
}

/** @internal What became of the objects of abandoned segments. */
export interface Discarded {
  removed: string[];
  /** Objects (or, when not even a listing succeeded, folders) that are still there. */
  left: string[];
}

/** @internal Data files that a task writes at most; `null` for one that builds a segment. */
export function filesOf(tasks: readonly PoolTask[]): number | null {
  const counts = tasks.map((task) => (task.kind === "rewrite" ? task.outputs.length : 0));
  return tasks.some((task) => task.kind === "rewrite") ? Math.max(...counts) : null;
}

/**
 * @internal Removes what abandoned builds uploaded, or says what is left after `ms`. `files`: of rewrites, how many data files each wrote at
 * most. `after`: what may still write one of them.
 */
export async function discard(
  descriptor: StoreDescriptor, callbacks: StoreCallbacks | undefined, branch: string | null, uuids: string[], ms: number,
  { files = null, after }: { files?: number | null; after?: Promise<unknown> } = {},
): Promise<Discarded> {
  if (uuids.length === 0) return { removed: [], left: [] };
  const folders = { removed: [], left: uuids.map((uuid) => (files === null ? `_indices/${uuid}/` : `data/${uuid}-*.lance`)) };
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<Discarded>((resolve) => { timer = setTimeout(() => resolve(folders), ms); });
  const work = (async (): Promise<Discarded> => {
    await after;
    const engine = await currentEngine();
    const spec = { descriptor, callbacks: callbacksOf(descriptor, callbacks), onRequest: undefined };
    return engine.call<Discarded>((glue) => files === null
      ? glue.discardSegments(spec, branch ?? undefined, uuids) : glue.discardRewrites(spec, branch ?? undefined, uuids, files));
  })().catch(() => folders);
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** @internal The objects that an error lists as written and named by no manifest. */
export function stagedOf(error: WhetstoneError): string[] {
  const staged = error.detail["staged"];
  return Array.isArray(staged) ? staged.filter((path) => typeof path === "string") : [];
}

/**
 * @internal The same error, saying what was left behind. `doubtful`: objects that errors listed. One that was not there to be removed may
 * still arrive.
 */
export function withStaged(error: WhetstoneError, { removed, left: found }: Discarded, doubtful: string[]): WhetstoneError {
  // Where there was no listing, folders and patterns are left.
  const covers = (one: string, path: string): boolean => one === path || (/\/$|\*/.test(one) && path.startsWith(one.split("*", 1)[0] as string));
  const settled = (path: string): boolean => [...removed, ...found].some((one) => covers(one, path));
  const left = [...found, ...new Set(doubtful.filter((path) => !settled(path)))];
  const { staged: _, ...detail } = error.detail; // what the error knew before anything was removed
  if (left.length > 0) detail["staged"] = left;
  const message = left.length === 0 ? error.message : `${error.message} Left on the store, named by no manifest: ${left.join(", ")}.`;
  return new WhetstoneError(error.code, message, detail, left.length === 0 ? "nothing" : "staged", { cause: error });
}

/**
 * Builds the segment of one task of a plan, here and now, and uploads its files. Nothing refers to them until
 * `table.commitSegments(plan, [segment, …])`. The same task may be run again: every attempt draws a uuid of its own.
 */
export async function buildSegment(task: BuildTask, store: Store | StoreDescriptor, options: BuildOptions = {}): Promise<BuiltSegment> {
  const { descriptor, callbacks } = store instanceof Store ? store : { descriptor: store, callbacks: undefined };
  const started: string[] = [];
  const { onProgress } = options;
  try {
    if (options.signal?.aborted) throw aborted();
    const built = await buildOn(await currentEngine(), {
      task, descriptor, callbacks: callbacksOf(descriptor, callbacks), manifest: undefined, signal: options.signal,
      onUuid: (uuid) => started.push(uuid),
      onProgress: (rows) => onProgress?.({ rows, rows_total: task.rows }),
      onRequest: options.onRequest,
    });
    return built as BuiltSegment;
  } catch (error) {
    const failure = WhetstoneError.from(error);
    throw withStaged(failure, await discard(descriptor, callbacks, task.branch, started, options.signal?.aborted ? 180 : 10_000), stagedOf(failure));
  }
}
