/** An open table: one version of it, what can be asked of it, and the jobs that run on it. */
import { aborted, currentEngine } from "./engine.js";
import type { Engine } from "./engine.js";
import { invalid, WhetstoneError } from "./errors.js";
import { Handle } from "./handle.js";
import { commitSegments, runChange, runCompaction, runPlan, runUpkeep } from "./jobs.js";
import type { CompactionOptions, CompactionPlan, CompactionReport, ForecastOptions, LayoutForecast, Pair, SqlResult } from "./layout-types.js";
import type { ChangeOptions, ChangePlan, ChangeReport, NewValues, RowChoice } from "./sandbox-types.js";
import { callbacksOf, Store, storeFor } from "./stores.js";
import { atOf, buildOptions, choiceOf, columnRequest, stretch, wholeNumber } from "./table-options.js";
import type {
  AuditOptions, ColumnOptions, GcOptions, OpenOptions, PartsOptions, PlanCreateIndexOptions, PlanMergeOptions, PlanRefreshOptions, RunOptions, UpkeepOptions,
} from "./table-options.js";
import type {
  AuditReport, BranchInfo, BuildPlan, BuiltSegment, CreateIndexPlan, DiscardPlan, DropIndexPlan, FieldInfo, FragmentColumns, FragmentInfo, GcPlan, GcReport,
  HistoryDocument, IndexInfo, MergePlan, OrphanList, Plan, Probe, PrunePlan, PruneReport, RefreshPlan, RefreshReport, RemovalPlan, RemovalReport, Report,
  RequestCounts, RequestEvent, SegmentContents, SegmentInfo, SegmentParts, ShowDocument, TagInfo, TransactionInfo, TrimPlan, TrimReport, UpkeepPlan,
  UpkeepReports, VersionInfo,
} from "./types.js";

/** A table at one version. Made by {@link open}. */
export class Table {
  readonly #handle: Handle;

  /** @internal */
  constructor(engine: Engine, id: number, store: Store, onRequest: ((event: RequestEvent) => void) | undefined) {
    this.#handle = new Handle(engine, id, store, onRequest);
  }

  /** Address of the table. */
  get uri(): string { return this.#handle.info.uri; }
  /** Version this handle is at. */
  get version(): number { return this.#handle.info.version; }
  /** Branch; `null` on the main branch. */
  get branch(): string | null { return this.#handle.info.branch; }
  /** Live rows; `null` when a fragment does not record its counts. */
  get rows(): number | null { return this.#handle.info.rows; }
  /** Top-level fields with their children. */
  get schema(): FieldInfo[] { return this.#handle.info.schema; }
  /** The store, e.g. for {@link buildSegment}. */
  get store(): Store { return this.#handle.store; }

  /** What this handle has asked of the store so far (its own thread; workers report through `onRequest`). */
  requests(): RequestCounts {
    this.#handle.mustBeOpen();
    return this.#handle.engine.sync((glue) => glue.tableRequests(this.#handle.id)) as RequestCounts;
  }

  /** Everything `whetstone show` prints. */
  show(options: { signal?: AbortSignal } = {}): Promise<ShowDocument> {
    return this.#handle.call((glue, id) => glue.tableShow(id), options.signal);
  }

  /** Fragments as objects, all of them or those with the given ids. For very many use {@link Table.fragmentColumns}. */
  async fragments(filter?: Iterable<number>, options: { signal?: AbortSignal } = {}): Promise<FragmentInfo[]> {
    const all = await this.#handle.call<FragmentInfo[]>((glue, id) => glue.tableFragments(id), options.signal);
    if (filter === undefined) return all;
    const wanted = new Set(filter);
    return all.filter((fragment) => wanted.has(fragment.id));
  }

  /** All fragments as typed columns, with the coverage of every index. */
  fragmentColumns(options: { signal?: AbortSignal } = {}): Promise<FragmentColumns> {
    return this.#handle.call((glue, id) => glue.tableFragmentColumns(id), options.signal);
  }

  /** The logical indexes, with their numbers and segments. */
  async indexes(options: { signal?: AbortSignal } = {}): Promise<IndexInfo[]> {
    return (await this.show(options)).indices;
  }

  /** The physical segments of one index; its name is taken exactly, else regardless of case when only one fits. */
  async segments(index: string, options: { signal?: AbortSignal } = {}): Promise<SegmentInfo[]> {
    return (await this.#handle.call<IndexInfo>((glue, id) => glue.tableIndex(id, index), options.signal)).segments;
  }

  /**
   * What is inside each segment of an index, as its method tells it, with its first pages, zones, keys or tokens. The files are read for
   * it, page by page; further parts come by {@link Table.parts}.
   */
  inspect(index: string, options: PartsOptions = {}): Promise<SegmentContents[]> {
    return this.#handle.call((glue, id) => glue.tableInspect(id, index, stretch(options)), options.signal);
  }

  /** Pages, zones, keys or tokens of one segment, by its uuid: those from `offset` on. Nothing else of it is read. */
  parts(index: string, uuid: string, options: PartsOptions = {}): Promise<SegmentParts> {
    return this.#handle.call((glue, id) => glue.tableParts(id, index, uuid, stretch(options)), options.signal);
  }

  /**
   * Which fragments, pages, zones and rows a condition has to look at, as the segments of an index tell: `op` is `=`, `<`, `<=`, `>`,
   * `>=`, `is-null`, `prefix`, `has` (a list has the item) or `contains`, as far as the method answers it; of full text `match` (any of
   * the words), `match-all`, `phrase` or `boolean` (`+must -must_not may "a phrase"`). The value is text: a number, `true`, the text
   * itself, hexadecimal for binaries, ISO 8601 for dates and times.
   */
  probe(index: string, op: string, value?: string | number | bigint | boolean, options: { signal?: AbortSignal } = {}): Promise<Probe> {
    return this.#handle.call((glue, id) => glue.tableProbe(id, index, op, value === undefined ? undefined : String(value)), options.signal);
  }

  /** Holds an index against its column: every disagreement between the rows of the covered fragments and what the segments say of them. */
  audit(index: string, options: AuditOptions = {}): Promise<AuditReport> {
    const { sample, signal, onProgress } = options;
    if (sample !== undefined) wholeNumber("sample", sample, 1);
    const tell = onProgress === undefined ? undefined : (rows: number, rows_total: number): void => onProgress({ rows, rows_total });
    return this.#handle.call((glue, id) => glue.tableAudit(id, index, sample === undefined ? {} : { sample }, tell), signal);
  }

  /** One logical index; its name is taken exactly, else regardless of case when only one fits. */
  index(name: string, options: { signal?: AbortSignal } = {}): Promise<IndexInfo> {
    return this.#handle.call((glue, id) => glue.tableIndex(id, name), options.signal);
  }

  /** Versions of the branch that are still there, ascending. */
  versions(options: { signal?: AbortSignal } = {}): Promise<VersionInfo[]> {
    return this.#handle.call((glue, id) => glue.tableVersions(id), options.signal);
  }

  /** Tags by name. */
  tags(options: { signal?: AbortSignal } = {}): Promise<Record<string, TagInfo>> {
    return this.#handle.call((glue, id) => glue.tableTags(id), options.signal);
  }

  /** Branches by name. */
  branches(options: { signal?: AbortSignal } = {}): Promise<Record<string, BranchInfo>> {
    return this.#handle.call((glue, id) => glue.tableBranches(id), options.signal);
  }

  /**
   * The values of a column (a dotted path) with their row addresses, as an Arrow IPC stream of two columns: the values, named by the
   * path, and `_rowaddr` (uint64). For anybody who wants to check what is read here; large columns in parts.
   */
  column(path: string, options: ColumnOptions = {}): Promise<Uint8Array<ArrayBuffer>> {
    const request = columnRequest(options);
    return this.#handle.call((glue, id) => glue.tableColumn(id, path, request), options.signal);
  }

  /** @internal Decodes a column and throws it away: to see that it can be read, and how fast. */
  countColumn(path: string, options: { signal?: AbortSignal } = {}): Promise<{ rows: number; bytes: number }> {
    return this.#handle.call((glue, id) => glue.tableCountColumn(id, path), options.signal);
  }

  /** @internal The same as JSON, one row a line. */
  columnLines(path: string, options: ColumnOptions = {}): Promise<{ path: string; type: string; rows: number; lines: string }> {
    const request = columnRequest(options);
    return this.#handle.call((glue, id) => glue.tableColumnLines(id, path, request), options.signal);
  }

  /** The transaction of this uuid, `null` when no readable version carries it. */
  async transaction(uuid: string, options: { signal?: AbortSignal } = {}): Promise<TransactionInfo | null> {
    // "No readable version carries it" is what a person acts on after COMMIT_UNKNOWN: it must not answer a slip of the pen.
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(uuid)) throw invalid(`a transaction is named by its uuid, ${JSON.stringify(uuid)} is none`);
    return this.#handle.call((glue, id) => glue.tableTransaction(id, uuid), options.signal);
  }

  /** Another handle, at another version (or tag) of the same branch. */
  async at(version: number | string, options: { signal?: AbortSignal } = {}): Promise<Table> {
    const at = atOf({ at: version });
    const id = await this.#handle.call<number>((glue, id) => glue.tableAt(id, at), options.signal);
    return new Table(this.#handle.engine, id, this.#handle.store, this.#handle.onRequest);
  }

  /** Moves this handle to the latest version; true when that is another. */
  async reload(options: { signal?: AbortSignal } = {}): Promise<boolean> {
    const before = this.version;
    await this.#handle.call((glue, id) => glue.tableReload(id), options.signal);
    this.#handle.moved();
    return this.version !== before;
  }

  /** Plans a refresh of one index: which fragments are not covered, in which runs they will be built, and what becomes of every segment. */
  async planRefresh(index: string, options: PlanRefreshOptions = {}): Promise<RefreshPlan> {
    const { signal, absorb } = options;
    const document = { ...buildOptions(options), ...(absorb === undefined ? {} : { absorb }) };
    return this.#handle.call((glue, id) => glue.tablePlanRefresh(id, index, document), signal);
  }

  /** Plans a new index on a column, which is held on to by its field id: renaming it before the plan is run does no harm. */
  async planCreateIndex(name: string, column: string, method: string, options: PlanCreateIndexOptions = {}): Promise<CreateIndexPlan> {
    const { signal, train, replace } = options;
    const document = { ...buildOptions(options), ...(train === undefined ? {} : { train }), ...(replace === undefined ? {} : { replace }) };
    // A list of columns, which other libraries take, becomes names with commas: those are refused as what they are.
    return this.#handle.call((glue, id) => glue.tablePlanCreateIndex(id, name, String(column), method, document), signal);
  }

  /** Plans to replace segments of an index by a few contiguous ones, so that a compaction can group their fragments. */
  async planMerge(index: string, options: PlanMergeOptions = {}): Promise<MergePlan> {
    const { signal, only, reread } = options;
    const document = { ...buildOptions(options), ...(only === undefined ? {} : { only }), ...(reread === undefined ? {} : { reread }) };
    return this.#handle.call((glue, id) => glue.tablePlanMerge(id, index, document), signal);
  }

  /** Plans to drop an index of any method; its name is taken exactly, else regardless of case when only one fits. */
  planDropIndex(name: string, options: { signal?: AbortSignal } = {}): Promise<DropIndexPlan> {
    return this.#handle.call((glue, id) => glue.tablePlanDropIndex(id, name), options.signal);
  }

  /**
   * Plans to remove what a job staged and did not commit: give its error (or the JSON of it, or of a report), or the segments that were
   * built. Refused with `COMMIT_UNKNOWN` while the commit may still arrive, and with `INVALID_ARGUMENT` when it landed.
   */
  planDiscard(job: WhetstoneError | BuiltSegment[] | object, options: { signal?: AbortSignal } = {}): Promise<DiscardPlan> {
    const document = job instanceof WhetstoneError ? job.toJSON() : job;
    return this.#handle.call((glue, id) => glue.tablePlanDiscard(id, document), options.signal);
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
    return this.#handle.call((glue, id) => glue.tableOrphans(id, olderThan === undefined ? {} : { older_than_ms: olderThan }), signal);
  }

  /** Plans a compaction as Lance 14 would: what is rewritten together, what stays and why, and what becomes of every segment. */
  async planCompaction(options: CompactionOptions & { signal?: AbortSignal } = {}): Promise<CompactionPlan> {
    const { signal, ...document } = options;
    return this.#handle.call((glue, id) => glue.tablePlanCompaction(id, document), signal);
  }

  /**
   * The layout as it is, and as it would be under several plans side by side: fragments, segments, groups, what stays frozen and why,
   * and what to do about it. Nothing is written, and no column is read.
   */
  async forecast(options: ForecastOptions & { signal?: AbortSignal } = {}): Promise<LayoutForecast> {
    const { signal, ...document } = options;
    if (document.segments !== undefined) wholeNumber("segments", document.segments, 1);
    return this.#handle.call((glue, id) => glue.tableForecast(id, document), signal);
  }

  /** Why a compaction would, or would not, rewrite two fragments together: the rule in one sentence. */
  async explainPair(a: number, b: number, options: CompactionOptions & { signal?: AbortSignal } = {}): Promise<Pair> {
    const { signal, ...document } = options;
    for (const [name, value] of [["a", a], ["b", b]] as const) {
      wholeNumber(name, value, 0);
      if (value > 0xffff_ffff) throw invalid(`fragment ids are 32-bit numbers, not ${value}`);
    }
    return this.#handle.call((glue, id) => glue.tableExplainPair(id, a, b, document), signal);
  }

  /**
   * Answers one statement: `ALTER TABLE t REFRESH INDEX i [WITH (…)]`, `CREATE INDEX i ON t USING method (column) [WITH (…)]`,
   * `DROP INDEX i ON t`, `OPTIMIZE t [WITH (…)]`, `SHOW INDEXES | FRAGMENTS | VERSIONS | SEGMENTS FROM t`, and `EXPLAIN` before any of them.
   * The table's name ends as its address does, or is `alias`. What a statement that does not parse is about is in `error.detail`:
   * `line`, `column`, and `excerpt` with a caret.
   */
  async sql(statement: string, options: RunOptions & { alias?: string } = {}): Promise<SqlResult> {
    const answer = await this.#handle.call<Omit<SqlResult, "report">>((glue, id) => glue.tableSql(id, statement, options.alias), options.signal);
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
    return this.#handle.call((glue, id) => glue.tableHistory(id), options.signal);
  }

  /** Plans to shorten the reuse history: superseded segments go first, then the records nobody needs any more. */
  planTrim(options: { signal?: AbortSignal } = {}): Promise<TrimPlan> {
    return this.#handle.call((glue, id) => glue.tablePlanUpkeep(id, "trim", {}), options.signal);
  }

  /** Plans to take out segments that newer ones of the same index make needless, under a tagged reuse history. */
  planPrune(options: { signal?: AbortSignal } = {}): Promise<PrunePlan> {
    return this.#handle.call((glue, id) => glue.tablePlanUpkeep(id, "prune", {}), options.signal);
  }

  /** Plans to remove row maps that no version of the table, nor of a branch, names and that are old enough (seven days at least). */
  async planGc(options: GcOptions = {}): Promise<GcPlan> {
    const { olderThanMs, signal } = options;
    if (olderThanMs !== undefined) wholeNumber("olderThanMs", olderThanMs, 0);
    return this.#handle.call((glue, id) => glue.tablePlanUpkeep(id, "gc", olderThanMs === undefined ? {} : { olderThanMs }), signal);
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
  async append(rows: number, options: { rowsPerFragment?: number } & ChangeOptions = {}): Promise<ChangeReport> {
    return this.run(await this.planAppend(rows, options), options);
  }

  /** Plans and deletes. */
  async delete(rows: string | RowChoice, options: ChangeOptions = {}): Promise<ChangeReport> {
    return this.run(await this.planDelete(rows, options), options);
  }

  /** Plans and updates. */
  async update(rows: string | RowChoice, set: NewValues, options: ChangeOptions = {}): Promise<ChangeReport> {
    return this.run(await this.planUpdate(rows, set, options), options);
  }

  #planChange(request: object, signal: AbortSignal | undefined): Promise<ChangePlan> {
    return this.#handle.call((glue, id) => glue.tablePlanChange(id, request), signal);
  }

  /** Executes a plan. When it fails before the commit, what was uploaded is removed, or listed in the error. */
  async run<K extends UpkeepPlan["kind"]>(plan: UpkeepPlan & { kind: K }, options?: UpkeepOptions): Promise<UpkeepReports[K]>;
  async run(plan: ChangePlan, options?: ChangeOptions): Promise<ChangeReport>;
  async run(plan: Plan, options?: RunOptions): Promise<Report>;
  async run(plan: CompactionPlan, options?: RunOptions): Promise<CompactionReport>;
  async run(plan: RemovalPlan, options?: RunOptions): Promise<RemovalReport>;
  async run(
    plan: Plan | CompactionPlan | RemovalPlan | UpkeepPlan | ChangePlan, options: RunOptions = {},
  ): Promise<Report | CompactionReport | RemovalReport | ChangeReport | UpkeepReports[UpkeepPlan["kind"]]> {
    const table = this.#handle;
    table.mustBeOpen();
    switch (plan.kind) {
      case "append": case "delete": case "update": return runChange(table, plan, options as ChangeOptions);
      case "trim": case "prune": case "gc": return runUpkeep(table, plan, options);
      case "discard": case "orphans": return table.call<RemovalReport>((glue, id) => glue.tableRemove(id, plan), options.signal);
    }
    table.engine.sync((glue) => glue.checkPlan(plan));
    return plan.kind === "compaction" ? runCompaction(table, plan, options) : runPlan(table, plan, options);
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

  /** Plans and runs a compaction. */
  async compact(options: CompactionOptions & RunOptions = {}): Promise<CompactionReport> {
    const { pool, workers, signal, onProgress, onCommitting, ...document } = options;
    const plan = await this.planCompaction({ ...document, ...(signal === undefined ? {} : { signal }) });
    return this.run(plan, options);
  }

  /** Commits segments that were built elsewhere for a plan of this table; the handle advances to the version that was committed. */
  async commitSegments(
    plan: BuildPlan, built: BuiltSegment[], options: Pick<RunOptions, "signal" | "onCommitting"> = {},
  ): Promise<RefreshReport> {
    this.#handle.mustBeOpen();
    await this.#handle.ensureCommits(options.signal);
    return commitSegments(this.#handle, plan, built, options);
  }

  /** Lets go of the handle; every later call is an error. */
  close(): void {
    this.#handle.close();
  }

  [Symbol.dispose](): void {
    this.close();
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
