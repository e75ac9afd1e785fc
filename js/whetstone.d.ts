// The engine's exports, as `src/js/` defines them. wasm-bindgen writes `whetstone.js` (and a declaration of its own, with `any`
// where a document crosses) into pkg/dist; this declaration is what the sources here are checked against.

/** Number of a running task; its outcome arrives through `Host.settle`. */
type TaskId = number;
/** Number of an open table inside the engine. */
type TableId = number;

export interface Host {
  /** Asks for `pollTask(id)` soon, never from within the call. */
  schedule(id: TaskId): void;
  /** The task ended: with a value, or (`ok` false) with an error document. */
  settle(id: TaskId, ok: boolean, value: unknown): void;
  /** The engine is panicking; the trap follows. */
  panicked(message: string): void;
}

export interface StoreSpec {
  /** A `StoreDescriptor`. */
  descriptor: unknown;
  /** Functions the store needs from JavaScript: a host store's operations, or `credentials`. */
  callbacks: object | undefined;
  onRequest: ((event: unknown) => void) | undefined;
}

export interface BuildHooks {
  /** Called with the uuid of the segment before anything of it is written. */
  onUuid(uuid: string): void;
  /** Called with the rows done so far. */
  onProgress(rows: number): void;
}

export default function init(options: { module_or_path: WebAssembly.Module }): Promise<unknown>;
export function setHost(host: Host): void;
export function pollTask(id: TaskId): void;
export function cancelTask(id: TaskId): boolean;

export function openTable(store: StoreSpec, at: unknown, branch: string | undefined): TaskId;
export function closeTable(table: TableId): void;
export function tableInfo(table: TableId): unknown;
export function tableRequests(table: TableId): unknown;
export function tableShow(table: TableId): TaskId;
export function tableFragments(table: TableId): TaskId;
export function tableFragmentColumns(table: TableId): TaskId;
export function tableIndex(table: TableId, index: string): TaskId;
export function tableInspect(table: TableId, index: string, options: unknown): TaskId;
export function tableParts(table: TableId, index: string, uuid: string, options: unknown): TaskId;
export function tableProbe(table: TableId, index: string, op: string, value: string | undefined): TaskId;
export function tableAudit(table: TableId, index: string, options: unknown, onProgress: ((rows: number, total: number) => void) | undefined): TaskId;
export function tableVersions(table: TableId): TaskId;
export function tableTags(table: TableId): TaskId;
export function tableBranches(table: TableId): TaskId;
export function tableTransaction(table: TableId, uuid: string): TaskId;
export function tableAt(table: TableId, at: unknown): TaskId;
export function tableReload(table: TableId): TaskId;
export function tablePlanRefresh(table: TableId, index: string, options: unknown): TaskId;
export function tablePlanCreateIndex(table: TableId, name: string, column: string, method: string, options: unknown): TaskId;
export function tablePlanMerge(table: TableId, index: string, options: unknown): TaskId;
export function tablePlanDropIndex(table: TableId, name: string): TaskId;
export function tablePlanCompaction(table: TableId, options: unknown): TaskId;
export function tableForecast(table: TableId, options: unknown): TaskId;
export function tableExplainPair(table: TableId, a: number, b: number, options: unknown): TaskId;
export function tableSql(table: TableId, statement: string, alias: string | undefined): TaskId;
export function checkPlan(plan: unknown): void;
export function tablePlannedManifest(table: TableId, plan: unknown): TaskId;
export function tableCommitSegments(table: TableId, plan: unknown, built: unknown, onCommitting: ((what: unknown) => unknown) | undefined): TaskId;
export function tablePlanDiscard(table: TableId, document: unknown): TaskId;
export function tableOrphans(table: TableId, options: unknown): TaskId;
export function tableRemove(table: TableId, plan: unknown): TaskId;
export function tableCommitDrop(table: TableId, plan: unknown, onCommitting: ((what: unknown) => unknown) | undefined): TaskId;
export function tableHistory(table: TableId): TaskId;
export function tablePlanUpkeep(table: TableId, kind: string, options: unknown): TaskId;
export function tableRunUpkeep(table: TableId, plan: unknown, onCommitting: ((what: unknown) => unknown) | undefined): TaskId;
export function sandboxCreate(store: StoreSpec, request: unknown, onRows: ((rows: number) => unknown) | undefined): TaskId;
export function tablePlanChange(table: TableId, request: unknown): TaskId;
export function tableRunChange(
  table: TableId, plan: unknown, onCommitting: ((what: unknown) => unknown) | undefined, onRows: ((rows: number) => unknown) | undefined,
): TaskId;
export function tableColumn(table: TableId, path: string, request: unknown): TaskId;
export function tableCountColumn(table: TableId, path: string): TaskId;
export function tableColumnLines(table: TableId, path: string, request: unknown): TaskId;
export function buildSegment(store: StoreSpec, task: unknown, manifest: Uint8Array | undefined, hooks: BuildHooks): TaskId;
export function discardSegments(store: StoreSpec, branch: string | undefined, uuids: string[]): TaskId;
export function tablePlannedCompaction(table: TableId, plan: unknown): TaskId;
export function rewriteFragments(store: StoreSpec, task: unknown, manifest: Uint8Array | undefined, hooks: BuildHooks): TaskId;
export function tableCommitCompaction(table: TableId, plan: unknown, built: unknown, onCommitting: ((what: unknown) => unknown) | undefined): TaskId;
export function discardRewrites(store: StoreSpec, branch: string | undefined, uuids: string[], files: number): TaskId;
export function openStore(store: StoreSpec): number;
export function closeStore(store: number): void;
export function storeGet(store: number, path: string, start: number | undefined, end: number | undefined): TaskId;
export function storeList(store: number, folder: string, max: number | undefined): TaskId;
export function storePut(store: number, path: string, data: Uint8Array, create: boolean): TaskId;
export function storeDelete(store: number, path: string): TaskId;
export function storeInfo(store: number): unknown;
export function tableStoreInfo(table: TableId): unknown;
export function tableStoreFound(table: TableId, wrong: string | undefined): void;
