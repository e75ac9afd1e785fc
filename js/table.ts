/** An open table: one version of it, what can be asked of it, and the jobs that run on it. */
import { discard, withStaged } from "./build.js";
import type { CountedBuild, PoolTask } from "./build.js";
import { aborted, currentEngine } from "./engine.js";
import type { Engine } from "./engine.js";
import { invalid, WhetstoneError } from "./errors.js";
import type { ErrorCode } from "./errors.js";
import { platform } from "./platform.js";
import type { Glue } from "./platform.js";
import type { StoreInfo } from "./objects.js";
import { WorkerPool } from "./pool.js";
import { ensureCommits } from "./race.js";
import type { ChangePlan, ChangeReport, NewValues, RowChoice } from "./sandbox-types.js";
import { callbacksOf, Store, storeFor } from "./stores.js";
import type { StoreOptions } from "./stores.js";
import type { CompactionOptions, CompactionPlan, CompactionReport, ForecastOptions, LayoutForecast, Pair, RewriteTask, SqlResult } from "./layout-types.js";
import type {
  AuditReport, BranchInfo, BuildPlan, BuiltSegment, CommittingEvent, CreateIndexPlan, DiscardPlan, DropIndexPlan, FieldInfo, FragmentColumns, FragmentInfo,
  GcPlan, GcReport, HistoryDocument, IndexInfo, MergePlan, OrphanList, Plan, Probe, ProgressEvent, PrunePlan, PruneReport, RefreshPlan,
  RefreshReport, RemovalPlan, RemovalReport, Report, RequestCounts, RequestEvent, SegmentContents, SegmentInfo, SegmentParts, ShowDocument, TagInfo,
  TransactionInfo, TrimPlan, TrimReport, UpkeepPlan, UpkeepReports, VersionInfo,
} from "./types.js";

/** Which version of a table. */
export interface AtOptions {
  version?: number;
  tag?: string;
  /** A version number, or the name of a tag. */
  at?: number | string;
}

/** Options of plans about the reuse history. */
export interface UpkeepOptions extends Pick<RunOptions, "signal" | "onCommitting"> {}

/** Options of {@link Table.planGc}. */
export interface GcOptions {
  /** Age in milliseconds a row map must have: seven days when absent, and never less. */
  olderThanMs?: number;
  signal?: AbortSignal;
}

/** Options of {@link open}. */
export interface OpenOptions extends AtOptions {
  branch?: string;
  /** How to reach the target, where its address does not say. */
  store?: Store | StoreOptions;
  signal?: AbortSignal;
  /** Called after every request, also those of workers. */
  onRequest?: (event: RequestEvent) => void;
}

/** Options of {@link Table.planRefresh}. */
export interface PlanRefreshOptions {
  /** Most segments to build, 1 when absent: the unindexed fragments are split into that many runs of neighbours. */
  segments?: number;
  /**
   * Build the fragments of existing segments anew with the rest: `"all"` (or true), or `"tiered"` the trailing ones that are no larger
   * than twice what is built behind them, so that the number of segments stays logarithmic.
   */
  absorb?: boolean | "none" | "tiered" | "all";
  /** Most bytes a build may hold for its segment, files included; it reads the column in several passes where that is too little at once. */
  maxBytes?: number;
  /** Parameters of the index method; what is not given is inherited from the existing segments. */
  params?: Record<string, unknown>;
  signal?: AbortSignal;
}

/** Options of {@link Table.planCreateIndex}. */
export interface PlanCreateIndexOptions {
  /** Most segments to build, 1 when absent: the fragments are split into that many runs of neighbours. */
  segments?: number;
  /** Parameters of the index method; what is not given is the method's default. */
  params?: Record<string, unknown>;
  /** False: commit the definition only; a refresh indexes the rows later. */
  train?: boolean;
  /** Replace an index of that name on the same column; without it such an index is `INDEX_EXISTS`. */
  replace?: boolean;
  /** Most bytes a build may hold for its segment, files included; it reads the column in several passes where that is too little at once. */
  maxBytes?: number;
  signal?: AbortSignal;
}

/** Options of {@link Table.planMerge}. */
export interface PlanMergeOptions {
  /** Segments to make, 1 when absent. */
  segments?: number;
  /** Uuids of the segments to merge; all when absent. */
  only?: string[];
  /** Read the column again even where the files of the segments would do. */
  reread?: boolean;
  /** Most bytes a build may hold for its segment, files included; it reads the column in several passes where that is too little at once. */
  maxBytes?: number;
  signal?: AbortSignal;
}

/** Options of {@link Table.run}. */
export interface RunOptions {
  /** Workers to use; a pool of the job's own when absent. */
  pool?: WorkerPool;
  /** Most workers of the job's own pool. */
  workers?: number;
  signal?: AbortSignal;
  onProgress?: (event: ProgressEvent) => void;
  /**
   * Told before each attempt to commit is sent, and awaited: keep what it says where you find it again should this program end
   * before the answer is there. When it throws, nothing is committed.
   */
  onCommitting?: (event: CommittingEvent) => void | Promise<void>;
}

/** Options of {@link Table.audit}. */
export interface AuditOptions {
  /** Look at only so many of the covered fragments, drawn by chance; the report states the error. */
  sample?: number;
  signal?: AbortSignal;
  onProgress?: (progress: { rows: number; rows_total: number }) => void;
}

/** Options of {@link Table.inspect} and {@link Table.parts}. */
export interface PartsOptions {
  /** Parts of a segment to leave out at the beginning. */
  offset?: number;
  /** Most parts to list of a segment: 1000 when absent, and never more than 10 000. */
  limit?: number;
  signal?: AbortSignal;
}

/** Options of {@link Table.column}. Without any of them: all live rows. */
export interface ColumnOptions {
  /** Only rows of this fragment. */
  fragment?: number;
  /** Live rows to leave out at the beginning. */
  offset?: number;
  /** Most rows. */
  limit?: number;
  /** Only the rows at these addresses; they come ascending, each once. Not together with the others. */
  addresses?: Iterable<bigint | string>;
  signal?: AbortSignal;
}

interface TableInfo {
  uri: string;
  version: number;
  branch: string | null;
  rows: number | null;
  schema: FieldInfo[];
}

/** Errors of a commit after which it is certain that nothing was committed, so that what was built can be removed. */
const NOT_COMMITTED: ReadonlySet<ErrorCode> = new Set([
  "ABORTED", "INDEX_NOT_FOUND", "INDEX_AMBIGUOUS", "INDEX_EXISTS", "INDEX_DROPPED", "INDEX_CHANGED", "COLUMN_NOT_FOUND", "DETAILS_DIFFER", "NOTHING_LEFT",
  "PARTIAL_REPLACEMENT", "BITMAP_UNKNOWN", "TYPE_CHANGED", "OVERLAP", "STALE_PLAN", "COMMIT_CONFLICT", "HISTORY_UNSUPPORTED",
  "UNSUPPORTED_FEATURE", "STORE_UNSAFE", "STORE_FULL", "INVALID_ARGUMENT",
] as const);

/** Time a commit has to end by itself after its signal fired. */
const COMMIT_GRACE_MS = 150;

// The engine keeps tables by number. One that was never closed is closed when its handle is collected, if its engine still lives.
const forgotten = new FinalizationRegistry<{ engine: Engine; id: number }>(({ engine, id }) => {
  if (engine.crash === null) engine.sync((glue) => glue.closeTable(id));
});

/** A table at one version. Made by {@link open}. */
export class Table {
  readonly #engine: Engine;
  readonly #store: Store;
  readonly #onRequest: ((event: RequestEvent) => void) | undefined;
  #id: number;
  #info: TableInfo;
  #closed = false;

  /** @internal */
  constructor(engine: Engine, id: number, store: Store, onRequest: ((event: RequestEvent) => void) | undefined) {
    this.#engine = engine;
    this.#id = id;
    this.#store = store;
    this.#onRequest = onRequest;
    this.#info = engine.sync((glue) => glue.tableInfo(id)) as TableInfo;
    forgotten.register(this, { engine, id }, this);
  }

  /** Address of the table. */
  get uri(): string { return this.#info.uri; }
  /** Version this handle is at. */
  get version(): number { return this.#info.version; }
  /** Branch; `null` on the main branch. */
  get branch(): string | null { return this.#info.branch; }
  /** Live rows; `null` when a fragment does not record its counts. */
  get rows(): number | null { return this.#info.rows; }
  /** Top-level fields with their children. */
  get schema(): FieldInfo[] { return this.#info.schema; }
  /** The store, e.g. for {@link buildSegment}. */
  get store(): Store { return this.#store; }

  /** What this handle has asked of the store so far (its own thread; workers report through `onRequest`). */
  requests(): RequestCounts {
    this.#open();
    return this.#engine.sync((glue) => glue.tableRequests(this.#id)) as RequestCounts;
  }

  /** Everything `whetstone show` prints. */
  show(options: { signal?: AbortSignal } = {}): Promise<ShowDocument> {
    return this.#call((glue) => glue.tableShow(this.#id), options.signal);
  }

  /** Fragments as objects, all of them or those with the given ids. For very many use {@link Table.fragmentColumns}. */
  async fragments(filter?: Iterable<number>, options: { signal?: AbortSignal } = {}): Promise<FragmentInfo[]> {
    const all = await this.#call<FragmentInfo[]>((glue) => glue.tableFragments(this.#id), options.signal);
    if (filter === undefined) return all;
    const wanted = new Set(filter);
    return all.filter((fragment) => wanted.has(fragment.id));
  }

  /** All fragments as typed columns, with the coverage of every index. */
  fragmentColumns(options: { signal?: AbortSignal } = {}): Promise<FragmentColumns> {
    return this.#call((glue) => glue.tableFragmentColumns(this.#id), options.signal);
  }

  /** The logical indexes, with their numbers and segments. */
  async indexes(options: { signal?: AbortSignal } = {}): Promise<IndexInfo[]> {
    return (await this.show(options)).indices;
  }

  /** The physical segments of one index; its name is taken exactly, else regardless of case when only one fits. */
  async segments(index: string, options: { signal?: AbortSignal } = {}): Promise<SegmentInfo[]> {
    return (await this.#call<IndexInfo>((glue) => glue.tableIndex(this.#id, index), options.signal)).segments;
  }

  /**
   * What is inside each segment of an index, as its method tells it, with its first pages, zones, keys or tokens. The files are read for
   * it, page by page; further parts come by {@link Table.parts}.
   */
  inspect(index: string, options: PartsOptions = {}): Promise<SegmentContents[]> {
    return this.#call((glue) => glue.tableInspect(this.#id, index, stretch(options)), options.signal);
  }

  /** Pages, zones, keys or tokens of one segment, by its uuid: those from `offset` on. Nothing else of it is read. */
  parts(index: string, uuid: string, options: PartsOptions = {}): Promise<SegmentParts> {
    return this.#call((glue) => glue.tableParts(this.#id, index, uuid, stretch(options)), options.signal);
  }

  /**
   * Which fragments, pages, zones and rows a condition has to look at, as the segments of an index tell: `op` is `=`, `<`, `<=`, `>`,
   * `>=`, `is-null`, `prefix`, `has` (a list has the item) or `contains`, as far as the method answers it; of full text `match` (any of
   * the words), `match-all`, `phrase` or `boolean` (`+must -must_not may "a phrase"`). The value is text: a number, `true`, the text
   * itself, hexadecimal for binaries, ISO 8601 for dates and times.
   */
  probe(index: string, op: string, value?: string | number | bigint | boolean, options: { signal?: AbortSignal } = {}): Promise<Probe> {
    return this.#call((glue) => glue.tableProbe(this.#id, index, op, value === undefined ? undefined : String(value)), options.signal);
  }

  /** Holds an index against its column: every disagreement between the rows of the covered fragments and what the segments say of them. */
  audit(index: string, options: AuditOptions = {}): Promise<AuditReport> {
    const { sample, signal, onProgress } = options;
    if (sample !== undefined) wholeNumber("sample", sample, 1);
    const tell = onProgress === undefined ? undefined : (rows: number, rows_total: number): void => onProgress({ rows, rows_total });
    return this.#call((glue) => glue.tableAudit(this.#id, index, sample === undefined ? {} : { sample }, tell), signal);
  }

  /** One logical index; its name is taken exactly, else regardless of case when only one fits. */
  index(name: string, options: { signal?: AbortSignal } = {}): Promise<IndexInfo> {
    return this.#call((glue) => glue.tableIndex(this.#id, name), options.signal);
  }

  /** Versions of the branch that are still there, ascending. */
  versions(options: { signal?: AbortSignal } = {}): Promise<VersionInfo[]> {
    return this.#call((glue) => glue.tableVersions(this.#id), options.signal);
  }

  /** Tags by name. */
  tags(options: { signal?: AbortSignal } = {}): Promise<Record<string, TagInfo>> {
    return this.#call((glue) => glue.tableTags(this.#id), options.signal);
  }

  /** Branches by name. */
  branches(options: { signal?: AbortSignal } = {}): Promise<Record<string, BranchInfo>> {
    return this.#call((glue) => glue.tableBranches(this.#id), options.signal);
  }

  /**
   * The values of a column (a dotted path) with their row addresses, as an Arrow IPC stream of two columns: the values, named by the
   * path, and `_rowaddr` (uint64). For anybody who wants to check what is read here; large columns in parts.
   */
  column(path: string, options: ColumnOptions = {}): Promise<Uint8Array<ArrayBuffer>> {
    const request = columnRequest(options);
    return this.#call((glue) => glue.tableColumn(this.#id, path, request), options.signal);
  }

  /** @internal Decodes a column and throws it away: to see that it can be read, and how fast. */
  countColumn(path: string, options: { signal?: AbortSignal } = {}): Promise<{ rows: number; bytes: number }> {
    return this.#call((glue) => glue.tableCountColumn(this.#id, path), options.signal);
  }

  /** @internal The same as JSON, one row a line. */
  columnLines(path: string, options: ColumnOptions = {}): Promise<{ path: string; type: string; rows: number; lines: string }> {
    const request = columnRequest(options);
    return this.#call((glue) => glue.tableColumnLines(this.#id, path, request), options.signal);
  }

  /** The transaction of this uuid, `null` when no readable version carries it. */
  async transaction(uuid: string, options: { signal?: AbortSignal } = {}): Promise<TransactionInfo | null> {
    // "No readable version carries it" is what a person acts on after COMMIT_UNKNOWN: it must not answer a slip of the pen.
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(uuid)) throw invalid(`a transaction is named by its uuid, ${JSON.stringify(uuid)} is none`);
    return this.#call((glue) => glue.tableTransaction(this.#id, uuid), options.signal);
  }

  /** Another handle, at another version (or tag) of the same branch. */
  async at(version: number | string, options: { signal?: AbortSignal } = {}): Promise<Table> {
    const at = atOf({ at: version });
    const id = await this.#call<number>((glue) => glue.tableAt(this.#id, at), options.signal);
    return new Table(this.#engine, id, this.#store, this.#onRequest);
  }

  /** Moves this handle to the latest version; true when that is another. */
  async reload(options: { signal?: AbortSignal } = {}): Promise<boolean> {
    const before = this.version;
    await this.#call((glue) => glue.tableReload(this.#id), options.signal);
    this.#refreshInfo();
    return this.version !== before;
  }

  /** Plans a refresh of one index: which fragments are not covered, in which runs they will be built, and what becomes of every segment. */
  async planRefresh(index: string, options: PlanRefreshOptions = {}): Promise<RefreshPlan> {
    const { signal, absorb } = options;
    const document = { ...buildOptions(options), ...(absorb === undefined ? {} : { absorb }) };
    return this.#call((glue) => glue.tablePlanRefresh(this.#id, index, document), signal);
  }

  /** Plans a new index on a column, which is held on to by its field id: renaming it before the plan is run does no harm. */
  async planCreateIndex(name: string, column: string, method: string, options: PlanCreateIndexOptions = {}): Promise<CreateIndexPlan> {
    const { signal, train, replace } = options;
    const document = { ...buildOptions(options), ...(train === undefined ? {} : { train }), ...(replace === undefined ? {} : { replace }) };
    // A list of columns, which other libraries take, becomes names with commas: those are refused as what they are.
    return this.#call((glue) => glue.tablePlanCreateIndex(this.#id, name, String(column), method, document), signal);
  }

  /** Plans to replace segments of an index by a few contiguous ones, so that a compaction can group their fragments. */
  async planMerge(index: string, options: PlanMergeOptions = {}): Promise<MergePlan> {
    const { signal, only, reread } = options;
    const document = { ...buildOptions(options), ...(only === undefined ? {} : { only }), ...(reread === undefined ? {} : { reread }) };
    return this.#call((glue) => glue.tablePlanMerge(this.#id, index, document), signal);
  }

  /** Plans to drop an index of any method; its name is taken exactly, else regardless of case when only one fits. */
  planDropIndex(name: string, options: { signal?: AbortSignal } = {}): Promise<DropIndexPlan> {
    return this.#call((glue) => glue.tablePlanDropIndex(this.#id, name), options.signal);
  }

  /**
   * Plans to remove what a job staged and did not commit: give its error (or the JSON of it, or of a report), or the segments that were
   * built. Refused with `COMMIT_UNKNOWN` while the commit may still arrive, and with `INVALID_ARGUMENT` when it landed.
   */
  planDiscard(job: WhetstoneError | BuiltSegment[] | object, options: { signal?: AbortSignal } = {}): Promise<DiscardPlan> {
    const document = job instanceof WhetstoneError ? job.toJSON() : job;
    return this.#call((glue) => glue.tablePlanDiscard(this.#id, document), options.signal);
  }

  /** Plans and discards. */
  async discard(job: WhetstoneError | BuiltSegment[] | object, options: { signal?: AbortSignal } = {}): Promise<RemovalReport> {
    return this.run(await this.planDiscard(job, options), options);
  }

  /**
   * What lies in the table's folders although no retained version of any branch names it. The answer is a plan: `table.run(list)` removes
   * what is `removable`, which is older than `olderThan` milliseconds (7 days; at least one, since a running build may own the rest).
   */
  orphans(options: { olderThan?: number; signal?: AbortSignal } = {}): Promise<OrphanList> {
    const { olderThan, signal } = options;
    if (olderThan !== undefined) wholeNumber("olderThan", olderThan, 0);
    return this.#call((glue) => glue.tableOrphans(this.#id, olderThan === undefined ? {} : { older_than_ms: olderThan }), signal);
  }

  /** Plans a compaction as Lance 14 would: what is rewritten together, what stays and why, and what becomes of every segment. */
  async planCompaction(options: CompactionOptions & { signal?: AbortSignal } = {}): Promise<CompactionPlan> {
    const { signal, ...document } = options;
    return this.#call((glue) => glue.tablePlanCompaction(this.#id, document), signal);
  }

  /**
   * The layout as it is, and as it would be under several plans side by side: fragments, segments, groups, what stays frozen and why,
   * and what to do about it. Nothing is written, and no column is read.
   */
  async forecast(options: ForecastOptions & { signal?: AbortSignal } = {}): Promise<LayoutForecast> {
    const { signal, ...document } = options;
    if (document.segments !== undefined) wholeNumber("segments", document.segments, 1);
    return this.#call((glue) => glue.tableForecast(this.#id, document), signal);
  }

  /** Why a compaction would, or would not, rewrite two fragments together: the rule in one sentence. */
  async explainPair(a: number, b: number, options: CompactionOptions & { signal?: AbortSignal } = {}): Promise<Pair> {
    const { signal, ...document } = options;
    for (const [name, value] of [["a", a], ["b", b]] as const) {
      wholeNumber(name, value, 0);
      if (value > 0xffff_ffff) throw invalid(`fragment ids are 32-bit numbers, not ${value}`);
    }
    return this.#call((glue) => glue.tableExplainPair(this.#id, a, b, document), signal);
  }

  /**
   * Answers one statement: `ALTER TABLE t REFRESH INDEX i [WITH (…)]`, `CREATE INDEX i ON t USING method (column) [WITH (…)]`,
   * `DROP INDEX i ON t`, `OPTIMIZE t [WITH (…)]`, `SHOW INDEXES | FRAGMENTS | VERSIONS | SEGMENTS FROM t`, and `EXPLAIN` before any of them.
   * The table's name ends as its address does, or is `alias`. What a statement that does not parse is about is in `error.detail`:
   * `line`, `column`, and `excerpt` with a caret.
   */
  async sql(statement: string, options: RunOptions & { alias?: string } = {}): Promise<SqlResult> {
    const answer = await this.#call<Omit<SqlResult, "report">>((glue) => glue.tableSql(this.#id, statement, options.alias), options.signal);
    if (answer.plan === null || answer.explain) return { ...answer, report: null };
    if (answer.plan.kind === "compaction") {
      const report = await this.run(answer.plan as CompactionPlan, options);
      const { fragments_removed, fragments_added, rows, segments_remapped, version } = report;
      const row = { fragments_removed: fragments_removed.length, fragments_added: fragments_added.length, rows, segments_remapped, version };
      return { ...answer, columns: Object.keys(row), rows: [Object.values(row)], report };
    }
    const report = await this.run(answer.plan as Plan, options);
    const { index_name, fragments_indexed, segments_added, segments_removed, version } = report;
    const row = { index_name, fragments_indexed, segments_added, segments_removed, version };
    return { ...answer, columns: Object.keys(row), rows: [Object.values(row)], report };
  }

  /** What the fragment reuse history says, what every segment covers through it, and why each part of it is still there. */
  history(options: { signal?: AbortSignal } = {}): Promise<HistoryDocument> {
    return this.#call((glue) => glue.tableHistory(this.#id), options.signal);
  }

  /** Plans to shorten the reuse history: superseded segments go first, then the records nobody needs any more. */
  planTrim(options: { signal?: AbortSignal } = {}): Promise<TrimPlan> {
    return this.#call((glue) => glue.tablePlanUpkeep(this.#id, "trim", {}), options.signal);
  }

  /** Plans to take out segments that newer ones of the same index make needless, under a tagged reuse history. */
  planPrune(options: { signal?: AbortSignal } = {}): Promise<PrunePlan> {
    return this.#call((glue) => glue.tablePlanUpkeep(this.#id, "prune", {}), options.signal);
  }

  /** Plans to remove row maps that no version of the table, nor of a branch, names and that are old enough (seven days at least). */
  async planGc(options: GcOptions = {}): Promise<GcPlan> {
    const { olderThanMs, signal } = options;
    if (olderThanMs !== undefined) wholeNumber("olderThanMs", olderThanMs, 0);
    return this.#call((glue) => glue.tablePlanUpkeep(this.#id, "gc", olderThanMs === undefined ? {} : { olderThanMs }), signal);
  }

  /** Plans and runs a trim. */
  async trim(options: UpkeepOptions = {}): Promise<TrimReport> {
    return this.run(await this.planTrim(options), options);
  }

  /** Plans and runs a prune. */
  async prune(options: UpkeepOptions = {}): Promise<PruneReport> {
    return this.run(await this.planPrune(options), options);
  }

  /** Plans a collection of row maps, and answers the plan: nothing is removed unless `dryRun` is false. */
  async gc(options: GcOptions & { dryRun: false }): Promise<GcReport>;
  async gc(options?: GcOptions & { dryRun?: boolean }): Promise<GcPlan | GcReport>;
  async gc(options: GcOptions & { dryRun?: boolean } = {}): Promise<GcPlan | GcReport> {
    const plan = await this.planGc(options);
    return options.dryRun === false ? this.run(plan, options) : plan;
  }

  async #upkeep<K extends UpkeepPlan["kind"]>(plan: UpkeepPlan & { kind: K }, options: UpkeepOptions): Promise<UpkeepReports[K]> {
    const { signal, onCommitting } = options;
    if (signal?.aborted) throw aborted();
    const hook = async (what: unknown): Promise<void> => { await onCommitting?.(what as CommittingEvent); };
    // A commit on its way is not dropped when the signal fires: it is short, and only its end tells what happened.
    const report = await this.#call<UpkeepReports[K]>((glue) => glue.tableRunUpkeep(this.#id, plan, hook));
    this.#refreshInfo();
    return report;
  }

  /** Plans to append rows from the generators that the columns were made with (or the defaults of their types). */
  planAppend(rows: number, options: { rowsPerFragment?: number; signal?: AbortSignal } = {}): Promise<ChangePlan> {
    const { rowsPerFragment, signal } = options;
    wholeNumber("rows", rows, 0);
    return this.#planChange({ kind: "append", rows, ...(rowsPerFragment === undefined ? {} : { rows_per_fragment: rowsPerFragment }) }, signal);
  }

  /** Plans to delete rows, given by a condition or a choice: deletion vectors are written, and a fragment goes with its last row. */
  async planDelete(rows: string | RowChoice, options: { signal?: AbortSignal } = {}): Promise<ChangePlan> {
    return this.#planChange({ kind: "delete", choice: choiceOf(rows) }, options.signal);
  }

  /** Plans to update rows as Lance does: they are deleted where they are and written anew, with other values, into new fragments. */
  async planUpdate(rows: string | RowChoice, set: NewValues, options: { signal?: AbortSignal } = {}): Promise<ChangePlan> {
    return this.#planChange({ kind: "update", choice: choiceOf(rows), set }, options.signal);
  }

  /** Plans and appends. */
  async append(rows: number, options: { rowsPerFragment?: number } & UpkeepOptions = {}): Promise<ChangeReport> {
    return this.run(await this.planAppend(rows, options), options);
  }

  /** Plans and deletes. */
  async delete(rows: string | RowChoice, options: UpkeepOptions = {}): Promise<ChangeReport> {
    return this.run(await this.planDelete(rows, options), options);
  }

  /** Plans and updates. */
  async update(rows: string | RowChoice, set: NewValues, options: UpkeepOptions = {}): Promise<ChangeReport> {
    return this.run(await this.planUpdate(rows, set, options), options);
  }

  #planChange(request: object, signal: AbortSignal | undefined): Promise<ChangePlan> {
    return this.#call((glue) => glue.tablePlanChange(this.#id, request), signal);
  }

  async #change(plan: ChangePlan, options: UpkeepOptions): Promise<ChangeReport> {
    const { signal, onCommitting } = options;
    if (signal?.aborted) throw aborted();
    await this.#ensureCommits(signal);
    const hook = async (what: unknown): Promise<void> => {
      if (signal?.aborted) throw aborted();
      await onCommitting?.(what as CommittingEvent);
    };
    // Not dropped when the signal fires: what was written is cleared away, or the commit ends, and only then it is known which.
    const report = await this.#call<ChangeReport>((glue) => glue.tableRunChange(this.#id, plan, hook));
    this.#refreshInfo();
    return report;
  }

  /** Executes a plan. When it fails before the commit, what was uploaded is removed, or listed in the error. */
  async run<K extends UpkeepPlan["kind"]>(plan: UpkeepPlan & { kind: K }, options?: UpkeepOptions): Promise<UpkeepReports[K]>;
  async run(plan: ChangePlan, options?: UpkeepOptions): Promise<ChangeReport>;
  async run(plan: Plan, options?: RunOptions): Promise<Report>;
  async run(plan: CompactionPlan, options?: RunOptions): Promise<CompactionReport>;
  async run(plan: RemovalPlan, options?: RunOptions): Promise<RemovalReport>;
  async run(
    plan: Plan | CompactionPlan | RemovalPlan | UpkeepPlan | ChangePlan, options: RunOptions = {},
  ): Promise<Report | CompactionReport | RemovalReport | ChangeReport | UpkeepReports[UpkeepPlan["kind"]]> {
    this.#open();
    if (isChange(plan)) return this.#change(plan, options);
    if (plan.kind === "trim" || plan.kind === "prune" || plan.kind === "gc") return this.#upkeep(plan, options);
    if (plan.kind === "discard" || plan.kind === "orphans") {
      return this.#call<RemovalReport>((glue) => glue.tableRemove(this.#id, plan), options.signal);
    }
    this.#engine.sync((glue) => glue.checkPlan(plan));
    if (plan.kind === "compaction") return this.#compact(plan, options);
    const { signal, onProgress } = options;
    if (signal?.aborted) throw aborted();
    // Before anything is built: a store that cannot be committed to is refused at once.
    const tasks = plan.kind === "drop_index" ? [] : plan.tasks;
    if (tasks.length > 0 || (plan.kind !== "refresh" && plan.kind !== "merge")) await this.#ensureCommits(signal);
    const rowsTotal = tasks.reduce((sum, task) => sum + task.rows, 0);
    const counted = plan.kind === "drop_index" || tasks.length === 0 ? [] : await this.#build(plan, options);
    const built = counted.map((one) => one.segment as BuiltSegment);
    const phase = (name: "commit" | "done"): void => {
      onProgress?.({ phase: name, tasks: tasks.length, state: name === "done" ? "done" : "running", rows: rowsTotal, rows_total: rowsTotal });
    };
    if (tasks.length > 0) phase("commit");
    const report = await this.#commit(plan, built, signal, options.onCommitting).catch(async (error: unknown) => {
      const failure = WhetstoneError.from(error);
      if (!NOT_COMMITTED.has(failure.code) || failure.changed === "unknown" || failure.changed === "committed") throw failure;
      throw withStaged(failure, await discard(this.#store.descriptor, this.#store.callbacks, plan.branch, built.map((segment) => segment.uuid), 10_000));
    });
    addRequests(report.requests, counted);
    phase("done");
    return report;
  }

  /** Plans and runs a refresh of one index. */
  async refresh(index: string, options: PlanRefreshOptions & RunOptions = {}): Promise<RefreshReport> {
    return this.run(await this.planRefresh(index, options), options);
  }

  /** Plans and creates an index. */
  async createIndex(name: string, column: string, method: string, options: PlanCreateIndexOptions & RunOptions = {}): Promise<Report> {
    return this.run(await this.planCreateIndex(name, column, method, options), options);
  }

  /** Plans and merges segments of an index. */
  async merge(index: string, options: PlanMergeOptions & RunOptions = {}): Promise<Report> {
    return this.run(await this.planMerge(index, options), options);
  }

  /** Plans and drops an index. */
  async dropIndex(name: string, options: { signal?: AbortSignal } = {}): Promise<Report> {
    return this.run(await this.planDropIndex(name, options), options);
  }

  /** Commits segments that were built elsewhere for a plan of this table; the handle advances to the version that was committed. */
  async commitSegments(
    plan: BuildPlan, built: BuiltSegment[], options: Pick<RunOptions, "signal" | "onCommitting"> = {},
  ): Promise<RefreshReport> {
    this.#open();
    await this.#ensureCommits(options.signal);
    return this.#commit(plan, built, options.signal, options.onCommitting);
  }

  /** Lets go of the handle; every later call is an error. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    forgotten.unregister(this);
    if (this.#engine.crash === null) this.#engine.sync((glue) => glue.closeTable(this.#id));
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Plans and runs a compaction. */
  async compact(options: CompactionOptions & RunOptions = {}): Promise<CompactionReport> {
    const { pool, workers, signal, onProgress, onCommitting, ...document } = options;
    const plan = await this.planCompaction({ ...document, ...(signal === undefined ? {} : { signal }) });
    return this.run(plan, options);
  }

  /** The groups are written in workers, the segments remapped and the fragments exchanged here. */
  async #compact(plan: CompactionPlan, options: RunOptions): Promise<CompactionReport> {
    const { signal, onProgress } = options;
    if (signal?.aborted) throw aborted();
    if (plan.tasks.length > 0) await this.#ensureCommits(signal);
    const { tasks, manifest } = await this.#call<{ tasks: RewriteTask[]; manifest: Uint8Array<ArrayBuffer> }>((glue) => glue.tablePlannedCompaction(this.#id, plan), signal);
    const total = tasks.reduce((sum, task) => sum + task.rows, 0);
    const counted = tasks.length === 0 ? [] : await this.#pooled(tasks, manifest, options);
    const phase = (name: "commit" | "done"): void => {
      onProgress?.({ phase: name, tasks: tasks.length, state: name === "done" ? "done" : "running", rows: total, rows_total: total });
    };
    if (tasks.length > 0) phase("commit");
    const report = await this.#commitCompaction(plan, counted, signal, options.onCommitting);
    addRequests(report.requests, counted);
    phase("done");
    return report;
  }

  /** Until something is sent an abort ends it and what was written is removed; after that only its end tells what happened. */
  async #commitCompaction(
    plan: CompactionPlan, counted: CountedBuild[], signal: AbortSignal | undefined, onCommitting: RunOptions["onCommitting"],
  ): Promise<CompactionReport> {
    const hook = async (what: unknown): Promise<void> => {
      if (signal?.aborted) throw aborted();
      await onCommitting?.(what as CommittingEvent);
    };
    const report = await this.#call<CompactionReport>((glue) => glue.tableCommitCompaction(this.#id, plan, counted.map((one) => one.segment), hook));
    this.#refreshInfo();
    return report;
  }

  async #build(plan: BuildPlan, options: RunOptions): Promise<CountedBuild[]> {
    const manifest = await this.#call<Uint8Array<ArrayBuffer>>((glue) => glue.tablePlannedManifest(this.#id, plan), options.signal);
    return this.#pooled(plan.tasks, manifest, options);
  }

  async #pooled(tasks: PoolTask[], manifest: Uint8Array<ArrayBuffer>, options: RunOptions): Promise<CountedBuild[]> {
    const pool = options.pool ?? new WorkerPool({ size: Math.min(options.workers ?? platform().parallelism(), tasks.length) });
    try {
      return await pool.run({
        tasks, descriptor: this.#store.descriptor, callbacks: this.#store.callbacks, manifest,
        signal: options.signal, onProgress: options.onProgress, onRequest: this.#onRequest,
      });
    } finally {
      if (pool !== options.pool) await pool.close();
    }
  }

  /**
   * A commit is not dropped when its signal fires: it is given a moment to end, because only then is it known what happened. After
   * that the answer is that it is not known.
   */
  async #commit(
    plan: Plan, built: BuiltSegment[], signal: AbortSignal | undefined, onCommitting: RunOptions["onCommitting"],
  ): Promise<RefreshReport> {
    if (signal?.aborted) throw aborted();
    const giveUp = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const onAbort = (): void => { timer = setTimeout(() => giveUp.abort(), COMMIT_GRACE_MS); };
    signal?.addEventListener("abort", onAbort, { once: true });
    let sent: CommittingEvent | undefined;
    const hook = async (what: unknown): Promise<void> => {
      await onCommitting?.(what as CommittingEvent);
      sent = what as CommittingEvent;
    };
    try {
      this.#open();
      const commit = (glue: Glue): number => plan.kind === "drop_index"
        ? glue.tableCommitDrop(this.#id, plan, hook) : glue.tableCommitSegments(this.#id, plan, built, hook);
      const report = await this.#engine.call<RefreshReport>(commit, giveUp.signal, "unknown");
      this.#refreshInfo();
      return report;
    } catch (error) {
      if (!giveUp.signal.aborted) throw error;
      const uuids = built.map((segment) => segment.uuid);
      if (sent === undefined) throw withStaged(aborted(), { removed: [], left: uuids.map((uuid) => `_indices/${uuid}/`) });
      throw new WhetstoneError("COMMIT_UNKNOWN",
        `the signal fired while ${plan.index.name} was being committed, and the commit may have landed: it has if version ${sent.version} carries transaction ${sent.transaction}, which \`whetstone transaction\` and table.transaction() tell`,
        { index: plan.index.name, segments: uuids, version_before: this.version, version: sent.version, transaction: sent.transaction }, "unknown", { cause: error });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  #ensureCommits(signal: AbortSignal | undefined): Promise<void> {
    const info = this.#engine.sync((glue) => glue.tableStoreInfo(this.#id)) as StoreInfo;
    return ensureCommits(this.#store, info, (wrong) => this.#engine.sync((glue) => glue.tableStoreFound(this.#id, wrong ?? undefined)), signal);
  }

  #refreshInfo(): void {
    this.#info = this.#engine.sync((glue) => glue.tableInfo(this.#id)) as TableInfo;
  }

  #open(): void {
    if (this.#closed) throw invalid("the table is closed");
  }

  async #call<T>(start: (glue: Glue) => number, signal?: AbortSignal): Promise<T> {
    this.#open();
    return this.#engine.call<T>(start, signal);
  }
}

/**
 * Opens a table: a path or `file:` address (Node), `http:`, `https:`, `s3:`, or a store.
 *
 * Costs one listing and one read on a store that lists in order; see the documentation for the other cases.
 */
export async function open(target: string | URL | Store, options: OpenOptions = {}): Promise<Table> {
  const store = storeFor(target, options.store);
  const at = atOf(options);
  if (options.signal?.aborted) throw aborted();
  const engine = await currentEngine();
  const spec = {
    descriptor: store.descriptor,
    callbacks: callbacksOf(store.descriptor, store.callbacks),
    onRequest: options.onRequest as ((event: unknown) => void) | undefined,
  };
  const id = await engine.call<number>((glue) => glue.openTable(spec, at, options.branch), options.signal);
  return new Table(engine, id, store, options.onRequest);
}

/** The requests of workers belong to the report of what they were sent for. */
function addRequests(sum: RequestCounts, counted: CountedBuild[]): void {
  for (const { requests } of counted) {
    sum.count += requests.count;
    sum.bytes += requests.bytes;
    sum.bytes_written += requests.bytes_written;
  }
}

function atOf({ version, tag, at }: AtOptions): { version?: number; tag?: string } {
  if ([version, tag, at].filter((given) => given !== undefined).length > 1) throw invalid("give one of version, tag and at");
  const number = version ?? (typeof at === "number" ? at : undefined);
  if (number !== undefined) {
    wholeNumber("version", number, 1);
    return { version: number };
  }
  const name = tag ?? (typeof at === "string" ? at : undefined);
  return name === undefined ? {} : { tag: name };
}

function columnRequest({ fragment, offset, limit, addresses }: ColumnOptions): Record<string, unknown> {
  for (const [name, value] of Object.entries({ fragment, offset, limit })) if (value !== undefined) wholeNumber(name, value, 0);
  return {
    ...(fragment === undefined ? {} : { fragment }), ...(offset === undefined ? {} : { offset }), ...(limit === undefined ? {} : { limit }),
    ...(addresses === undefined ? {} : { addresses: Array.from(addresses, String) }),
  };
}

function stretch({ offset, limit }: PartsOptions): Record<string, unknown> {
  if (offset !== undefined) wholeNumber("offset", offset, 0);
  if (limit !== undefined) wholeNumber("limit", limit, 0);
  return { ...(offset === undefined ? {} : { offset }), ...(limit === undefined ? {} : { limit }) };
}

function choiceOf(rows: string | RowChoice): RowChoice {
  return typeof rows === "string" ? { where: rows } : rows;
}

function isChange(plan: { kind: string }): plan is ChangePlan {
  return plan.kind === "append" || plan.kind === "delete" || plan.kind === "update";
}

/** The options that all plans share which build segments. */
function buildOptions({ segments, maxBytes, params }: { segments?: number; maxBytes?: number; params?: Record<string, unknown> }): Record<string, unknown> {
  if (segments !== undefined) wholeNumber("segments", segments, 1);
  if (maxBytes !== undefined) wholeNumber("maxBytes", maxBytes, 1);
  return {
    ...(segments === undefined ? {} : { segments }), ...(maxBytes === undefined ? {} : { max_bytes: maxBytes }),
    ...(params === undefined ? {} : { params }),
  };
}

function wholeNumber(name: string, value: number, least: number): void {
  if (!Number.isInteger(value) || value < least) throw invalid(`${name} is a whole number of at least ${least}, not ${value}`);
  if (!Number.isSafeInteger(value)) throw new WhetstoneError("NUMBER_TOO_LARGE", `${name} is past 2^53: ${value}`);
}
