/** Stores: where a table lies and how to get there. A store is data (its descriptor), plus functions where data is not enough. */
import { shownAddress } from "./address.js";
import { azureStore, gcsStore } from "./cloud.js";
import type { AzureStoreOptions, GcsStoreOptions } from "./cloud.js";
import { invalid } from "./errors.js";
import { platform } from "./platform.js";

/** What `get` of a host store answers. */
export interface HostObject {
  /** The bytes asked for; fewer when the object ends before the range does. */
  data: Uint8Array;
  /** Bytes of the whole object. */
  size: number;
  /** Milliseconds since 1970, when known. */
  modified?: number;
}

/** What `list` of a host store answers per entry directly in the folder. */
export interface HostEntry {
  /** Name inside the folder, without slashes. */
  name: string;
  /** Bytes; absent for a folder. */
  size?: number;
  /** Milliseconds since 1970, when known. */
  modified?: number;
}

/**
 * The operations of a host store. Paths are relative to the table, with slashes. A rejection may carry a `status`, which is read as
 * the HTTP status of the same meaning (403: not allowed, 507: out of space, 503: try again).
 */
export interface HostOperations {
  /** The bytes `[start, end)` of an object, or all of it; `null` when there is no such object. */
  get(path: string, range: { start: number; end: number } | null): Promise<HostObject | null>;
  /** What is directly in a folder; an absent folder is empty. */
  list(folder: string): Promise<HostEntry[]>;
  /** Writes an object whole. With `create`, only if it is absent and atomically so: `"exists"` says it was not. */
  put?(path: string, chunks: Uint8Array[], options: { create: boolean }): Promise<"written" | "exists">;
  /** Removes an object; an absent one is no error. */
  delete?(path: string): Promise<void>;
}

/** @internal Chunks as the engine hands them to a store that takes them in turn: the next one, or nothing after the last. */
export type ChunksInTurn = () => Uint8Array | undefined;

/** @internal Operations that write one chunk after the other, so that a large file is never held a second time. */
export interface FolderOperations extends Omit<HostOperations, "put"> {
  readonly chunksInTurn: true;
  put(path: string, chunks: Uint8Array[] | ChunksInTurn, options: { create: boolean }): Promise<"written" | "exists">;
}

/** Keys for an S3-compatible store. */
export interface S3Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

/** A request that {@link S3StoreOptions.signer} is asked to sign. */
export interface RequestToSign {
  method: "GET" | "PUT" | "DELETE";
  bucket: string;
  /** Key of the object in the bucket; empty for a listing of the bucket. */
  key: string;
  /** Query parameters of a listing, which the signature has to cover; empty for an object. */
  query: Record<string, string>;
  /** Headers that are sent with it, e.g. `if-none-match: *`; they may be signed or not. */
  headers: Record<string, string>;
}

/** @internal Functions of a store that stay on the thread that owns them. */
export type StoreCallbacks = Partial<HostOperations> & {
  credentials?: () => Promise<S3Credentials | { sas: string } | { token: string }>;
  signer?: (request: RequestToSign) => Promise<string | null>;
};

/** How a store creates an object only if there is none: what decides every commit. */
export interface CreateIfAbsent {
  /** What is sent or called. */
  spelling: string;
  /** What whoever comes too late is told. */
  loser: string;
}

/**
 * The part of a store that is data: it can be posted to a worker or kept in a queue. It holds keys when it was given keys; a plan or
 * a task never does.
 */
export interface StoreDescriptor {
  /** `auto`: found out from the address, then by asking. */
  kind: "auto" | "webdav" | "static" | "s3" | "azure" | "gcs" | "host";
  /** Address of the table. For a folder of this machine a `file:` address; empty for a host store of the caller's. */
  url: string;
  region?: string;
  /** S3, GCS: `scheme://host[:port]` of another provider; Azure: the address of the account. */
  endpoint?: string;
  access_key_id?: string;
  secret_access_key?: string;
  session_token?: string;
  /** Azure: shared access signature, as the portal gives it. */
  sas?: string;
  /** GCS: OAuth access token. */
  token?: string;
  /** S3, Azure, GCS: send nothing that identifies anyone; the default without keys. */
  anonymous?: boolean;
  /** S3: the bucket is in the host name of the endpoint, not in the path. */
  virtual_hosted?: boolean;
  /** S3: sign reads into the query, which saves browsers a preflight per object; the default there. */
  sign_queries?: boolean;
  /** HTTP: Basic authentication. */
  username?: string;
  password?: string;
  /** HTTP: further headers, sent to the origin of `url` only. */
  headers?: Record<string, string>;
  /** Time limit of a request in milliseconds; bodies get more by their size. */
  timeout_ms?: number;
  /** Base paths that a table's manifest names, and where they are from here. */
  bases?: Record<string, string>;
  /** Read base paths that are not in the table: other folders of the store, and other origins (without credentials). */
  other_origins?: boolean;
  /** Commit on a store whose create-if-absent is not known to be atomic. */
  unsafe_commits?: boolean;
  /** Host: its functions are known to create atomically. */
  atomic_create?: boolean;
  /** Report headers of answers in `onRequest` events. */
  tell_headers?: boolean;
}

/** A store: made by one of the factories below. */
export class Store {
  readonly descriptor: StoreDescriptor;
  /** A human-readable address, without keys. */
  readonly uri: string;
  /** How it creates an object only if there is none. */
  readonly createIfAbsent: CreateIfAbsent;
  /** @internal */
  readonly callbacks: StoreCallbacks | undefined;

  /** @internal */
  constructor(descriptor: StoreDescriptor, createIfAbsent: CreateIfAbsent, callbacks?: StoreCallbacks, uri = descriptor.url) {
    this.descriptor = descriptor;
    this.createIfAbsent = createIfAbsent;
    this.callbacks = callbacks;
    this.uri = uri;
  }
}

/** Options that every store over HTTP takes. */
export interface CommonStoreOptions {
  /** Time limit of a request in milliseconds; bodies get more by their size. */
  timeoutMs?: number;
  /** Base paths that a table's manifest names, and where they are from here. */
  bases?: Record<string, string>;
  /** Read base paths that are not in the table: other folders of the store, and other origins (without credentials). */
  otherOrigins?: boolean;
  /** Commit on a store whose create-if-absent is not known to be atomic. */
  unsafeCommits?: boolean;
}

/** What HTTP stores send. */
const CONDITIONAL_PUT = "PUT with If-None-Match: *";

/** @internal */
export function common(options: CommonStoreOptions): Partial<StoreDescriptor> {
  return defined({ timeout_ms: options.timeoutMs, bases: options.bases, other_origins: options.otherOrigins, unsafe_commits: options.unsafeCommits });
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** @internal */
export function defined<T extends object>(options: T): Defined<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Defined<T>;
}

/** Options of {@link httpStore}. */
export interface HttpStoreOptions extends CommonStoreOptions {
  /** How versions are found: `webdav` lists by PROPFIND, `static` reads the version hint, `auto` (the default) tries in turn. */
  mode?: "auto" | "webdav" | "static";
  /** Sent with every request, to this origin only. */
  headers?: Record<string, string>;
  username?: string;
  password?: string;
}

/** A table at an `http:` or `https:` address. */
export function httpStore(url: string | URL, options: HttpStoreOptions = {}): Store {
  const parsed = parseUrl(String(url));
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") throw invalid(`${parsed.protocol} is no HTTP address: give http: or https:`);
  if (parsed.username !== "" || parsed.password !== "") throw invalid("give the user name and password as options, not in the address");
  if (parsed.search !== "" || parsed.hash !== "") throw invalid("a table's address has no query and no fragment: objects are below it");
  const kind = options.mode ?? "auto";
  if (!["auto", "webdav", "static"].includes(kind)) throw invalid(`mode is auto, webdav or static, not ${kind}`);
  const { headers, username, password } = options;
  return new Store(
    { kind, url: parsed.href.replace(/\/+$/, ""), ...defined({ headers, username, password }), ...common(options) },
    { spelling: CONDITIONAL_PUT, loser: "status 412" },
  );
}

/** Options of {@link s3Store}. */
export interface S3StoreOptions extends Partial<S3Credentials>, CommonStoreOptions {
  /** Region to sign for; `us-east-1` when nothing says otherwise. */
  region?: string;
  /** Address of an S3-compatible service; Amazon's when absent. */
  endpoint?: string;
  /** Bucket in the path (`true`) or in the host name; with an endpoint of one's own, the path is the default. */
  pathStyle?: boolean;
  /** Send nothing that identifies anyone. */
  anonymous?: boolean;
  /** Sign reads into the query (saves browsers a preflight per object); the default in browsers. */
  signQueries?: boolean;
  /** Asked for keys on the thread that opened the table, as often as requests need them; never stored. */
  credentials?: () => S3Credentials | Promise<S3Credentials>;
  /**
   * Asked for a presigned address before each request, instead of keys. `null` refuses the request: a signer that cannot sign listings
   * refuses them (the empty key), and versions are then found through the hint file.
   */
  signer?: (request: RequestToSign) => string | URL | null | Promise<string | URL | null>;
}

/** A table at `s3://bucket/key`, or at the `https:` address of a bucket's key. In Node the usual `AWS_…` variables fill in what is not given. */
export function s3Store(target: string | URL, options: S3StoreOptions = {}): Store {
  const text = String(target).replace(/\/+$/, "");
  if (!/^s3:\/\/[^/?#]+\/[^?#]+$/.test(text) && !/^https?:\/\/[^/?#]+\/[^?#]+$/.test(text)) throw invalid(`${text} names no bucket and key: give s3://bucket/key`);
  const env = platform().environment();
  const { credentials, anonymous, signer } = options;
  if (signer !== undefined && (credentials !== undefined || options.accessKeyId !== undefined)) throw invalid("give a signer or keys, not both");
  // Keys come from one place: those given, or those of the environment, never half of each.
  const given = options.accessKeyId !== undefined || credentials !== undefined || anonymous === true || signer !== undefined;
  const keys = given ? options : { accessKeyId: env["AWS_ACCESS_KEY_ID"], secretAccessKey: env["AWS_SECRET_ACCESS_KEY"], sessionToken: env["AWS_SESSION_TOKEN"] };
  if ((keys.accessKeyId === undefined) !== (keys.secretAccessKey === undefined)) throw invalid("an access key id and a secret access key go together");
  const endpoint = options.endpoint ?? (text.startsWith("s3:") ? env["AWS_ENDPOINT_URL_S3"] ?? env["AWS_ENDPOINT_URL"] : undefined);
  if (endpoint !== undefined) parseUrl(endpoint);
  return new Store(
    {
      kind: "s3", url: text,
      ...defined({
        region: options.region ?? env["AWS_REGION"] ?? env["AWS_DEFAULT_REGION"], endpoint: endpoint?.replace(/\/+$/, ""),
        access_key_id: keys.accessKeyId, secret_access_key: keys.secretAccessKey, session_token: keys.sessionToken,
        anonymous, virtual_hosted: options.pathStyle === undefined ? undefined : !options.pathStyle, sign_queries: options.signQueries,
      }),
      ...common(options),
    },
    { spelling: CONDITIONAL_PUT, loser: "status 412, or 409 while another request for the object is under way" },
    signer !== undefined ? { signer: async (request) => (await signer(request))?.toString() ?? null }
      : credentials === undefined ? undefined : { credentials: async () => credentials() },
  );
}

/** A table in a folder of this machine (Node, Deno, Bun). */
export function nodeFsStore(folder: string | URL): Store {
  const { localPath } = platform();
  if (localPath === undefined) throw invalid("there is no file system here: open a store or an http(s): or s3: address");
  const path = localPath(String(folder));
  if (path === null) throw invalid(`${String(folder)} is neither a path nor a file: address`);
  return new Store({ kind: "host", url: path.url }, { spelling: "link of a finished temporary file", loser: "EEXIST" }, undefined, path.path);
}

/** A table behind functions of the caller's. Workers ask the calling thread, so the functions may close over anything. */
export function hostStore(operations: HostOperations, options: HostStoreOptions = {}): Store {
  return operationsStore(operations, options.uri ?? "host:", { spelling: "put with create: true", loser: "\"exists\"" }, options.unsafeCommits);
}

/** Options of {@link hostStore}. */
export interface HostStoreOptions {
  /** Shown to people. */
  uri?: string;
  /** Commit although nobody has seen that `put` creates atomically. */
  unsafeCommits?: boolean;
}

/** @internal A store of functions; `atomic` when they are ours and known to create atomically. */
export function operationsStore(
  operations: HostOperations, uri: string, createIfAbsent: CreateIfAbsent, unsafeCommits: boolean | undefined, atomic = false,
): Store {
  if (typeof operations.get !== "function" || typeof operations.list !== "function") throw invalid("a host store needs at least get and list");
  const callbacks: StoreCallbacks = { get: (p, r) => operations.get(p, r), list: (f) => operations.list(f) };
  if (operations.put !== undefined) callbacks.put = (p, c, o) => operations.put!(p, c, o);
  if (operations.delete !== undefined) callbacks.delete = (p) => operations.delete!(p);
  const descriptor: StoreDescriptor = { kind: "host", url: "", ...defined({ unsafe_commits: unsafeCommits }), ...(atomic ? { atomic_create: true } : {}) };
  return new Store(descriptor, createIfAbsent, callbacks, uri);
}

/** A table in memory: for tests, and to work on a copy. `objects` maps paths inside the table to their bytes; it is changed in place. */
export function memoryStore(objects: Map<string, Uint8Array> = new Map(), options: { uri?: string } = {}): Store {
  const written = new Map<string, number>();
  return operationsStore({
    async get(path, range) {
      const bytes = objects.get(path);
      if (bytes === undefined) return null;
      const data = range === null ? bytes.slice() : bytes.slice(range.start, range.end);
      const modified = written.get(path);
      return { data, size: bytes.length, ...(modified === undefined ? {} : { modified }) };
    },
    async list(folder) {
      const prefix = folder === "" ? "" : `${folder}/`;
      const found = new Map<string, HostEntry>();
      for (const [path, bytes] of objects) {
        if (!path.startsWith(prefix)) continue;
        const [name = "", ...below] = path.slice(prefix.length).split("/");
        const modified = written.get(path);
        found.set(below.length > 0 ? `${name}/` : name, below.length > 0 ? { name } : { name, size: bytes.length, ...(modified === undefined ? {} : { modified }) });
      }
      return [...found.values()];
    },
    async put(path, chunks, { create }) {
      if (create && objects.has(path)) return "exists";
      objects.set(path, joinChunks(chunks));
      written.set(path, Date.now());
      return "written";
    },
    async delete(path) {
      objects.delete(path);
    },
  }, options.uri ?? "memory:", { spelling: "a look and a write in one step", loser: "the object is there" }, undefined, true);
}

/** @internal */
export function joinChunks(chunks: Uint8Array[]): Uint8Array {
  const all = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

/** @internal */
export function parseUrl(text: string): URL {
  try {
    return new URL(text);
  } catch {
    throw invalid(`${shownAddress(text)} is no address`);
  }
}

/** How to reach a target given as an address: an S3-compatible service, a plain HTTP server, or as its scheme says. */
export type StoreOptions =
  | ({ kind: "s3" } & S3StoreOptions)
  | ({ kind: "azure" } & AzureStoreOptions)
  | ({ kind: "gcs" } & GcsStoreOptions)
  | ({ kind: "webdav" | "static" | "http" } & Omit<HttpStoreOptions, "mode">);

/** @internal From whatever `open` takes to a store. */
export function storeFor(target: string | URL | Store, options?: Store | StoreOptions): Store {
  if (options instanceof Store) return options;
  if (target instanceof Store) return target;
  const text = String(target);
  if (text.startsWith("s3://") || options?.kind === "s3") {
    if (options !== undefined && options.kind !== "s3") throw invalid(`an s3: address cannot be opened as ${options.kind}`);
    return s3Store(text, options ?? {});
  }
  const scheme = /^(az|gs):\/\//.exec(text)?.[1];
  const service = options?.kind ?? (scheme === "az" ? "azure" : scheme === "gs" ? "gcs" : undefined);
  if ((scheme === "az" && service !== "azure") || (scheme === "gs" && service !== "gcs")) throw invalid(`an ${scheme}: address cannot be opened as ${service}`);
  if (options?.kind === "azure" || (options === undefined && service === "azure")) return azureStore(text, options ?? {});
  if (options?.kind === "gcs" || (options === undefined && service === "gcs")) return gcsStore(text, options ?? {});
  if (options !== undefined || /^https?:\/\//i.test(text)) {
    return httpStore(text, { ...options, mode: options === undefined || options.kind === "http" ? "auto" : options.kind });
  }
  // A scheme that is not ours is no folder; one letter is a drive.
  const other = /^([a-z][a-z0-9+.-]+):/i.exec(text)?.[1]?.toLowerCase();
  if (other !== undefined && other !== "file") {
    const how = ["http", "https", "s3", "az", "gs"].includes(other) ? `is no whole address: ${other}://…` : `has an address of ${other}:, which cannot be opened: give http:, https:, s3:, az:, gs: or file:`;
    const shown = shownAddress(text);
    throw invalid(`${JSON.stringify(shown.length > 60 ? `${shown.slice(0, 60)}…` : shown)} ${how}; a folder of that name is ./${other}:…`);
  }
  return nodeFsStore(text);
}

/** @internal The functions the engine needs beside the descriptor, on this thread. */
export function callbacksOf(descriptor: StoreDescriptor, callbacks: StoreCallbacks | undefined): StoreCallbacks | undefined {
  if (descriptor.kind !== "host" || callbacks !== undefined) return callbacks;
  const { localFiles } = platform();
  if (!descriptor.url.startsWith("file:")) throw invalid("a host store is more than its descriptor: give the store itself");
  if (localFiles === undefined) throw invalid("there is no file system here");
  return localFiles();
}
