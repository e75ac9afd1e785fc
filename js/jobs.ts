// Running plans on an open table: segments that are built and committed, fragments that are compacted, changes of rows, and the upkeep
// of reuse histories.
import { discard, stagedOf, withStaged } from "./build.js";
import type { CountedBuild, PoolTask } from "./build.js";
import { countRows } from "./counting.js";
import { aborted } from "./engine.js";
import { WhetstoneError } from "./errors.js";
import type { ErrorCode } from "./errors.js";
import type { Handle } from "./handle.js";
import type { CompactionPlan, CompactionReport, RewriteTask } from "./layout-types.js";
import { platform } from "./platform.js";
import { WorkerPool } from "./pool.js";
import type { ChangeOptions, ChangePlan, ChangeReport } from "./sandbox-types.js";
import type { RunOptions, UpkeepOptions } from "./table-options.js";
import type { BuildPlan, BuiltSegment, CommittingEvent, Plan, RefreshReport, RequestCounts, UpkeepPlan, UpkeepReports } from "./types.js";

type Manifest = Uint8Array<ArrayBuffer>;
type BeforeSending = (what: unknown) => Promise<void>;

/** Errors of a commit after which it is certain that nothing was committed, so that what was built can be removed. */
const NOT_COMMITTED: ReadonlySet<ErrorCode> = new Set([
  "ABORTED", "INDEX_NOT_FOUND", "INDEX_AMBIGUOUS", "INDEX_EXISTS", "INDEX_DROPPED", "INDEX_CHANGED", "COLUMN_NOT_FOUND", "DETAILS_DIFFER", "NOTHING_LEFT",
  "PARTIAL_REPLACEMENT", "BITMAP_UNKNOWN", "TYPE_CHANGED", "OVERLAP", "STALE_PLAN", "COMMIT_CONFLICT", "HISTORY_UNSUPPORTED",
  "UNSUPPORTED_FEATURE", "STORE_UNSAFE", "STORE_FULL", "INVALID_ARGUMENT",
] as const);

/** Time a commit has to end by itself after its signal fired. */
const COMMIT_GRACE_MS = 150;

/** @internal Builds the segments of a plan, if it has any, and commits it. */
export async function runPlan(table: Handle, plan: Plan, options: RunOptions): Promise<RefreshReport> {
  const { signal } = options;
  if (signal?.aborted) throw aborted();
  const tasks = plan.kind === "drop_index" ? [] : plan.tasks;
  // Before anything is built: a store that cannot be committed to is refused at once.
  if (tasks.length > 0 || (plan.kind !== "refresh" && plan.kind !== "merge")) await table.ensureCommits(signal);
  const counted = plan.kind === "drop_index" || tasks.length === 0 ? [] : await build(table, plan, options);
  const built = counted.map((one) => one.segment as BuiltSegment);
  const phase = phases(tasks, options);
  if (tasks.length > 0) phase("commit");
  const report = await commitSegments(table, plan, built, options).catch(async (error: unknown) => {
    const failure = WhetstoneError.from(error);
    if (!NOT_COMMITTED.has(failure.code) || failure.changed === "unknown" || failure.changed === "committed") throw failure;
    // Of the segments it lists what was built; the rest is what the commit itself may have left.
    const others = stagedOf(failure).filter((path) => !built.some((segment) => path.startsWith(`_indices/${segment.uuid}/`)));
    throw withStaged(failure, await discard(table.store.descriptor, table.store.callbacks, plan.branch, built.map((segment) => segment.uuid), 10_000), others);
  });
  addRequests(report.requests, counted);
  phase("done");
  return report;
}

async function build(table: Handle, plan: BuildPlan, options: RunOptions): Promise<CountedBuild[]> {
  const manifest = await table.call<Manifest>((glue, id) => glue.tablePlannedManifest(id, plan), options.signal);
  return inWorkers(table, plan.tasks, manifest, options);
}

/**
 * @internal Commits built segments, or a drop. It is not dropped when its signal fires: it is given a moment to end, because only then
 * is it known what happened. After that the answer is that it is not known.
 */
export async function commitSegments(table: Handle, plan: Plan, built: BuiltSegment[], { signal, onCommitting }: UpkeepOptions): Promise<RefreshReport> {
  if (signal?.aborted) throw aborted();
  const giveUp = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const onAbort = (): void => { timer = setTimeout(() => giveUp.abort(), COMMIT_GRACE_MS); };
  signal?.addEventListener("abort", onAbort, { once: true });
  let sent: CommittingEvent | undefined;
  const hook = beforeSending({
    onCommitting: async (what) => {
      await onCommitting?.(what);
      sent = what;
    },
  });
  try {
    const report = await table.call<RefreshReport>((glue, id) => plan.kind === "drop_index"
      ? glue.tableCommitDrop(id, plan, hook) : glue.tableCommitSegments(id, plan, built, hook), giveUp.signal, "unknown");
    table.moved();
    return report;
  } catch (error) {
    if (!giveUp.signal.aborted) throw error;
    const uuids = built.map((segment) => segment.uuid);
    if (sent === undefined) throw withStaged(aborted(), { removed: [], left: uuids.map((uuid) => `_indices/${uuid}/`) }, []);
    throw new WhetstoneError("COMMIT_UNKNOWN",
      `the signal fired while ${plan.index.name} was being committed, and the commit may have landed: it has if version ${sent.version} carries transaction ${sent.transaction}, which \`whetstone transaction\` and table.transaction() tell`,
      { index: plan.index.name, segments: uuids, version_before: table.info.version, version: sent.version, transaction: sent.transaction }, "unknown", { cause: error });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}

/** @internal The groups are written in workers, the segments remapped and the fragments exchanged here. */
export async function runCompaction(table: Handle, plan: CompactionPlan, options: RunOptions): Promise<CompactionReport> {
  const { signal } = options;
  if (signal?.aborted) throw aborted();
  if (plan.tasks.length > 0) await table.ensureCommits(signal);
  const { tasks, manifest } = await table.call<{ tasks: RewriteTask[]; manifest: Manifest }>((glue, id) => glue.tablePlannedCompaction(id, plan), signal);
  const counted = tasks.length === 0 ? [] : await inWorkers(table, tasks, manifest, options);
  const phase = phases(tasks, options);
  if (tasks.length > 0) phase("commit");
  const written = counted.map((one) => one.segment);
  const report = await toTheEnd<CompactionReport>(table, (glue, id) => glue.tableCommitCompaction(id, plan, written, beforeSending(options)));
  addRequests(report.requests, counted);
  phase("done");
  return report;
}

/** @internal Writes the files of a change and commits it. */
export async function runChange(table: Handle, plan: ChangePlan, options: ChangeOptions): Promise<ChangeReport> {
  const { signal, onProgress } = options;
  if (signal?.aborted) throw aborted();
  await table.ensureCommits(signal);
  return toTheEnd(table, (glue, id) => glue.tableRunChange(id, plan, beforeSending(options), countRows(plan.rows, signal, onProgress)));
}

/** @internal Runs a plan about the reuse history. */
export async function runUpkeep<K extends UpkeepPlan["kind"]>(
  table: Handle, plan: UpkeepPlan & { kind: K }, { signal, onCommitting }: UpkeepOptions,
): Promise<UpkeepReports[K]> {
  if (signal?.aborted) throw aborted();
  return toTheEnd(table, (glue, id) => glue.tableRunUpkeep(id, plan, beforeSending({ onCommitting })));
}

/** What is not dropped when its signal fires: only its end tells whether it committed, or cleared away what it had written. */
async function toTheEnd<T>(table: Handle, start: Parameters<Handle["call"]>[0]): Promise<T> {
  const report = await table.call<T>(start);
  table.moved();
  return report;
}

/** What the engine waits for before it sends an attempt to commit: until then an abort ends the job, and nothing is sent unannounced. */
function beforeSending({ signal, onCommitting }: { [K in keyof UpkeepOptions]: UpkeepOptions[K] | undefined }): BeforeSending {
  return async (what) => {
    if (signal?.aborted) throw aborted();
    await onCommitting?.(what as CommittingEvent);
  };
}

async function inWorkers(table: Handle, tasks: PoolTask[], manifest: Manifest, options: RunOptions): Promise<CountedBuild[]> {
  const pool = options.pool ?? new WorkerPool({ size: Math.min(options.workers ?? platform().parallelism(), tasks.length) });
  try {
    return await pool.run({
      tasks, descriptor: table.store.descriptor, callbacks: table.store.callbacks, manifest,
      signal: options.signal, onProgress: options.onProgress, onRequest: table.onRequest,
    });
  } finally {
    if (pool !== options.pool) await pool.close();
  }
}

/** Tells of the phases after the workers have done their part. */
function phases(tasks: readonly { rows: number }[], { onProgress }: RunOptions): (phase: "commit" | "done") => void {
  const rows = tasks.reduce((sum, task) => sum + task.rows, 0);
  return (phase) => onProgress?.({ phase, tasks: tasks.length, state: phase === "done" ? "done" : "running", rows, rows_total: rows });
}

/** The requests of workers belong to the report of what they were sent for. */
function addRequests(sum: RequestCounts, counted: CountedBuild[]): void {
  for (const { requests } of counted) {
    sum.count += requests.count;
    sum.bytes += requests.bytes;
    sum.bytes_written += requests.bytes_written;
  }
}
