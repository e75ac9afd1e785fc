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
export { azureStore, gcsStore } from "./cloud.js";
export type { AzureStoreOptions, GcsStoreOptions } from "./cloud.js";
export { checkStore, conformance } from "./conformance.js";
export type { CheckOptions, CheckStoreOptions, StoreCheck, StoreReport } from "./conformance.js";
export { directoryStore, opfsStore } from "./directory.js";
export type { DirectoryStoreOptions } from "./directory.js";
export type { Remedy } from "./rules.js";
export { archiveTable, copyTable, createSandbox } from "./sandbox.js";
export type * from "./sandbox-types.js";
export { r2Store } from "./r2.js";
export type { R2BucketLike, R2StoreOptions } from "./r2.js";
export { hostStore, httpStore, memoryStore, nodeFsStore, s3Store, Store } from "./stores.js";
export type {
  CommonStoreOptions, CreateIfAbsent, HostEntry, HostObject, HostOperations, HostStoreOptions, HttpStoreOptions, RequestToSign, S3Credentials, S3StoreOptions,
  StoreDescriptor, StoreOptions,
} from "./stores.js";
export { open, Table } from "./table.js";
export type {
  AtOptions, AuditOptions, ColumnOptions, GcOptions, OpenOptions, PartsOptions, PlanCreateIndexOptions, PlanMergeOptions, PlanRefreshOptions, RunOptions,
  UpkeepOptions,
} from "./table-options.js";
export type * from "./layout-types.js";
export type * from "./types.js";
