/** Stores: where a table lies and how to get there. A store is data (its descriptor), plus functions where data is not enough. */
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

/** Keys for an S3-compatible store. */
export interface S3Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

/** @internal Functions of a store that stay on the thread that owns them. */
export type StoreCallbacks = Partial<HostOperations> & { credentials?: () => Promise<S3Credentials> };

/** The part of a store that is data: it can be posted to a worker or kept in a queue (with keys, when it was given keys). */
export type StoreDescriptor =
  | { kind: "http"; url: string; mode: "auto" | "webdav" | "static"; headers?: Record<string, string> }
  | {
    kind: "s3"; bucket: string; key: string; region: string; endpoint?: string; path_style: boolean; access_key_id?: string;
    secret_access_key?: string; session_token?: string; anonymous: boolean;
  }
  | { kind: "node-fs"; path: string }
  | { kind: "host"; uri: string };

/** A store: made by one of the factories below. */
export class Store {
  readonly descriptor: StoreDescriptor;
  /** @internal */
  readonly callbacks: StoreCallbacks | undefined;

  /** @internal */
  constructor(descriptor: StoreDescriptor, callbacks?: StoreCallbacks) {
    this.descriptor = descriptor;
    this.callbacks = callbacks;
  }

  /** A human-readable address, without keys. */
  get uri(): string {
    const d = this.descriptor;
    switch (d.kind) {
      case "http": return d.url;
      case "s3": return `s3://${d.bucket}/${d.key}`;
      case "node-fs": return d.path;
      case "host": return d.uri;
    }
  }
}

/** Options of {@link httpStore}. */
export interface HttpStoreOptions {
  /** How versions are found: `webdav` lists by PROPFIND, `static` reads the version hint, `auto` (the default) tries in turn. */
  mode?: "auto" | "webdav" | "static";
  /** Sent with every request, to this origin only. */
  headers?: Record<string, string>;
}

/** A table at an `http:` or `https:` address. */
export function httpStore(url: string | URL, options: HttpStoreOptions = {}): Store {
  const parsed = parseUrl(String(url));
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") throw invalid(`${parsed.protocol} is no HTTP address: give http: or https:`);
  if (parsed.username !== "" || parsed.password !== "") throw invalid("give a user name and password as an Authorization header, not in the address");
  if (parsed.search !== "" || parsed.hash !== "") throw invalid("a table's address has no query and no fragment: objects are below it");
  const mode = options.mode ?? "auto";
  if (!["auto", "webdav", "static"].includes(mode)) throw invalid(`mode is auto, webdav or static, not ${mode}`);
  const href = parsed.href.replace(/\/+$/, "");
  return new Store({ kind: "http", url: href, mode, ...(options.headers === undefined ? {} : { headers: { ...options.headers } }) });
}

/** Options of {@link s3Store}. */
export interface S3StoreOptions extends Partial<S3Credentials> {
  /** Region to sign for; `us-east-1` when absent. */
  region?: string;
  /** Address of an S3-compatible service; Amazon's when absent. */
  endpoint?: string;
  /** Bucket in the path instead of the host name; the default with an endpoint. */
  pathStyle?: boolean;
  /** Send nothing that identifies anyone. */
  anonymous?: boolean;
  /** Asked for keys, per request, on the thread that opened the table; never stored. */
  credentials?: () => S3Credentials | Promise<S3Credentials>;
}

/** A table at `s3://bucket/key`. In Node the usual `AWS_…` variables fill in what is not given. */
export function s3Store(target: string, options: S3StoreOptions = {}): Store {
  const match = /^s3:\/\/([^/?#]+)\/([^?#]+?)\/*$/.exec(target);
  if (match === null) throw invalid(`${target} is no s3://bucket/key address`);
  const [, bucket = "", key = ""] = match;
  const env = platform().environment();
  const given = options.accessKeyId !== undefined || options.credentials !== undefined || options.anonymous === true;
  const pick = (value: string | undefined, name: string): string | undefined => value ?? (given ? undefined : env[name]);
  const accessKeyId = pick(options.accessKeyId, "AWS_ACCESS_KEY_ID");
  const secretAccessKey = pick(options.secretAccessKey, "AWS_SECRET_ACCESS_KEY");
  const sessionToken = pick(options.sessionToken, "AWS_SESSION_TOKEN");
  const endpoint = options.endpoint ?? env["AWS_ENDPOINT_URL_S3"] ?? env["AWS_ENDPOINT_URL"];
  if (endpoint !== undefined) parseUrl(endpoint);
  if ((accessKeyId === undefined) !== (secretAccessKey === undefined)) throw invalid("an access key id and a secret access key go together");
  const { credentials } = options;
  return new Store(
    {
      kind: "s3", bucket, key,
      region: options.region ?? env["AWS_REGION"] ?? env["AWS_DEFAULT_REGION"] ?? "us-east-1",
      path_style: options.pathStyle ?? endpoint !== undefined,
      anonymous: options.anonymous ?? (accessKeyId === undefined && credentials === undefined),
      ...(endpoint === undefined ? {} : { endpoint: endpoint.replace(/\/+$/, "") }),
      ...(accessKeyId === undefined ? {} : { access_key_id: accessKeyId }),
      ...(secretAccessKey === undefined ? {} : { secret_access_key: secretAccessKey }),
      ...(sessionToken === undefined ? {} : { session_token: sessionToken }),
    },
    credentials === undefined ? undefined : { credentials: async () => credentials() },
  );
}

/** A table in a folder of this machine (Node, Deno, Bun). */
export function nodeFsStore(folder: string | URL): Store {
  const { localPath } = platform();
  if (localPath === undefined) throw invalid("there is no file system here: open a store or an http(s): or s3: address");
  const path = localPath(String(folder));
  if (path === null) throw invalid(`${String(folder)} is neither a path nor a file: address`);
  return new Store({ kind: "node-fs", path });
}

/** A table behind functions of the caller's. Workers ask the calling thread, so the functions may close over anything. */
export function hostStore(operations: HostOperations, options: { uri?: string } = {}): Store {
  if (typeof operations.get !== "function" || typeof operations.list !== "function") throw invalid("a host store needs at least get and list");
  const callbacks: StoreCallbacks = { get: (p, r) => operations.get(p, r), list: (f) => operations.list(f) };
  if (operations.put !== undefined) callbacks.put = (p, c, o) => operations.put!(p, c, o);
  if (operations.delete !== undefined) callbacks.delete = (p) => operations.delete!(p);
  return new Store({ kind: "host", uri: options.uri ?? "host:" }, callbacks);
}

/** A table in memory: for tests, and to work on a copy. `objects` maps paths inside the table to their bytes; it is changed in place. */
export function memoryStore(objects: Map<string, Uint8Array> = new Map(), options: { uri?: string } = {}): Store {
  const written = new Map<string, number>();
  return hostStore({
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
        found.set(name, below.length > 0 ? { name } : { name, size: bytes.length, ...(modified === undefined ? {} : { modified }) });
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
  }, { uri: options.uri ?? "memory:" });
}

function joinChunks(chunks: Uint8Array[]): Uint8Array {
  const all = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

function parseUrl(text: string): URL {
  try {
    return new URL(text);
  } catch {
    throw invalid(`${text} is no address`);
  }
}

/** How to reach a target given as an address: an S3-compatible service, a plain HTTP server, or as its scheme says. */
export type StoreOptions = ({ kind: "s3" } & S3StoreOptions) | ({ kind: "webdav" | "static" | "http" } & Pick<HttpStoreOptions, "headers">);

/** @internal From whatever `open` takes to a store. */
export function storeFor(target: string | URL | Store, options?: Store | StoreOptions): Store {
  if (options instanceof Store) return options;
  if (target instanceof Store) return target;
  const text = String(target);
  if (text.startsWith("s3://")) {
    if (options !== undefined && options.kind !== "s3") throw invalid(`an s3: address cannot be opened as ${options.kind}`);
    return s3Store(text, options ?? {});
  }
  if (/^https?:\/\//i.test(text)) {
    if (options?.kind === "s3") return s3OverHttp(text, options);
    const mode = options === undefined || options.kind === "http" ? "auto" : options.kind;
    return httpStore(text, { mode, ...(options?.headers === undefined ? {} : { headers: options.headers }) });
  }
  return nodeFsStore(text);
}

/** `https://endpoint/bucket/key`, said to be S3. */
function s3OverHttp(text: string, options: S3StoreOptions): Store {
  const url = parseUrl(text);
  const [bucket, ...key] = decodeURIComponent(url.pathname).replace(/^\/+|\/+$/g, "").split("/");
  if (bucket === undefined || bucket === "" || key.length === 0) throw invalid(`${text} does not name a bucket and a key`);
  return s3Store(`s3://${bucket}/${key.join("/")}`, { endpoint: url.origin, ...options });
}

/** @internal The functions the engine needs beside the descriptor, on this thread. */
export function callbacksOf(descriptor: StoreDescriptor, callbacks: StoreCallbacks | undefined): StoreCallbacks | undefined {
  if (descriptor.kind === "node-fs") {
    const { localStore } = platform();
    if (localStore === undefined) throw invalid("there is no file system here");
    return localStore(descriptor.path);
  }
  if (descriptor.kind === "host" && callbacks === undefined) throw invalid("a host store is more than its descriptor: give the store itself");
  return callbacks;
}
