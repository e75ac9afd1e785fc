/**
 * Whetstone keeps the scalar indexes of Lance tables complete, where the tables lie: on HTTP object storage, from a browser tab,
 * Node or an edge function.
 *
 * @packageDocumentation
 */
export { buildSegment } from "./build.js";
export type { BuildOptions } from "./build.js";
export { init } from "./engine.js";
export type { InitOptions } from "./engine.js";
export { WhetstoneError } from "./errors.js";
export type { ErrorCode, ErrorDocument } from "./errors.js";
export type { WasmSource, WorkerSource } from "./platform.js";
export { WorkerPool } from "./pool.js";
export type { PoolOptions } from "./pool.js";
export { hostStore, httpStore, memoryStore, nodeFsStore, s3Store, Store } from "./stores.js";
export type {
  HostEntry, HostObject, HostOperations, HttpStoreOptions, S3Credentials, S3StoreOptions, StoreDescriptor, StoreOptions,
} from "./stores.js";
export { open, Table } from "./table.js";
export type { AtOptions, AuditOptions, ColumnOptions, OpenOptions, PlanCreateIndexOptions, PlanMergeOptions, PlanRefreshOptions, RunOptions } from "./table.js";
export type * from "./types.js";
