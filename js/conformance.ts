/**
 * What a store does, seen from outside: everything the engine relies on, tried on objects of its own, which are removed again.
 *
 * `commits` in the report answers the question that matters: may a commit be decided by this store's create-if-absent?
 */
import { corsChecks, inBrowser } from "./cors.js";
import { currentEngine } from "./engine.js";
import type { Engine } from "./engine.js";
import { WhetstoneError } from "./errors.js";
import { Objects } from "./objects.js";
import type { ListedObject, StoreInfo } from "./objects.js";
import { platform } from "./platform.js";
import { checkFolder, clearFolder, CONTENDERS, createTwice, raceRounds, ROUNDS } from "./race.js";
import { remediesFor } from "./rules.js";
import type { Remedy } from "./rules.js";
import { Store, storeFor } from "./stores.js";
import type { StoreOptions } from "./stores.js";
import type { RequestCounts, RequestEvent } from "./types.js";

/** One thing that was looked at. */
export interface StoreCheck {
  /** Stable short name, e.g. `race`. */
  name: string;
  /** `failed`: the engine cannot work (or commit) with it. `warning`: it works here, and something is to be known. `skipped`: not looked at. */
  status: "ok" | "failed" | "warning" | "skipped";
  /** One sentence with what was seen. */
  seen: string;
}

/** The outcome of {@link conformance}. */
export interface StoreReport {
  uri: string;
  kind: StoreInfo["kind"];
  /** How this kind of store creates an object only if there is none, and what a loser is told. */
  create_if_absent: { spelling: string; loser: string };
  checks: StoreCheck[];
  /** True when everything that reading needs was found right. */
  readable: boolean;
  /** `safe`: atomic, as far as racing tells; `unsafe`: read-only unless `unsafeCommits`; `unknown`: nothing could be written. */
  commits: "safe" | "unsafe" | "unknown";
  /** One sentence: what may be done with the store. */
  verdict: string;
  /** What to change, and where to paste it. */
  remedies: Remedy[];
  requests: RequestCounts;
  /** Milliseconds. */
  ms: number;
  /** Objects of the check that could not be removed. */
  left: string[];
}

/** Options of {@link conformance} and {@link checkStore}. */
export interface CheckOptions {
  /** Writers that race for one object (12). */
  contenders?: number;
  /** Races (20). */
  rounds?: number;
  /** Leave out the check that writes over a thousand objects. */
  quick?: boolean;
  /** The origin of a page that is to use the store, e.g. `https://app.example`: whether it may is found out by asking as it would. */
  origin?: string;
  signal?: AbortSignal;
  onProgress?: (check: StoreCheck) => void;
}

/** Options of {@link checkStore}. */
export interface CheckStoreOptions extends CheckOptions {
  /** How to reach the target, where its address does not say. */
  store?: Store | StoreOptions;
}

/** Checks the store at an address: a table of it, or any folder that may be written. */
export function checkStore(target: string | URL | Store, options: CheckStoreOptions = {}): Promise<StoreReport> {
  return conformance(storeFor(target, options.store), options);
}

/** More than one page of every service. */
const MANY = 1005;
/** Clocks further apart than this make S3 refuse signatures, in milliseconds. */
const SKEW_MS = 5 * 60_000;
const MIB = 1024 * 1024;

/** Checks a store. Writes below its root in a folder of its own, and removes it. Rejects only when the store cannot be reached at all. */
export async function conformance(store: Store, options: CheckOptions = {}): Promise<StoreReport> {
  const engine = await currentEngine();
  const check = new Check(engine, store, options);
  try {
    return await check.run();
  } finally {
    check.close();
  }
}

class Check {
  readonly #store: Store;
  readonly #engine: Engine;
  readonly #options: CheckOptions;
  readonly #objects: Objects;
  readonly #info: StoreInfo;
  readonly #folder = checkFolder();
  readonly #written = new Map<string, Set<string>>();
  readonly #checks: StoreCheck[] = [];
  readonly #requests: RequestCounts = { count: 0, bytes: 0, bytes_written: 0 };
  readonly #onRequest = (event: RequestEvent): void => {
    this.#requests.count += 1;
    this.#requests.bytes += event.bytes;
    this.#requests.bytes_written += event.bytes_written;
    this.#last = event;
  };
  #last: RequestEvent | undefined;

  constructor(engine: Engine, store: Store, options: CheckOptions) {
    if (options.signal !== undefined) platform().manyListeners?.(options.signal); // fifty requests at a time
    this.#engine = engine;
    this.#store = store;
    this.#options = options;
    this.#objects = this.#open();
    this.#info = this.#objects.info();
  }

  close(): void {
    this.#objects.close();
  }

  #open(headers?: Record<string, string>): Objects {
    return new Objects(this.#engine, this.#store, { signal: this.#options.signal, onRequest: this.#onRequest, ...(headers === undefined ? {} : { headers }) });
  }

  async run(): Promise<StoreReport> {
    const start = performance.now();
    let left: string[] = [];
    let written = false;
    let wrong: string | null | undefined;
    try {
      written = await this.#step("write", () => this.#write());
      if (written) {
        await this.#step("names", () => this.#names());
        await this.#step("ranges", () => this.#ranges(`${this.#folder}/pattern`, pattern(2 * MIB)));
        await this.#step("listing", () => this.#listing());
        if (this.#options.quick === true) this.#say("many", "skipped", `${MANY} objects in one folder: left out`);
        else await this.#step("many", () => this.#many());
        await this.#step("read_after_write", () => this.#readAfterWrite());
        await this.#step("delete", () => this.#delete());
        wrong = await this.#creates();
        await this.#step("clock", () => this.#clock());
      } else {
        await this.#step("ranges", () => this.#rangesOfTable());
        for (const name of ["names", "listing", "many", "read_after_write", "delete", "create", "race", "clock"]) this.#say(name, "skipped", "nothing can be written");
      }
      if (this.#isHttp) {
        await this.#step("encoding", () => this.#encoding(written));
        for (const found of await corsChecks(this.#store, this.#info, this.#options.origin, (headers) => this.#open(headers), await this.#readable(written), () => this.#last)) this.#say(found.name, found.status, found.seen);
      }
    } finally {
      for (const [folder, names] of this.#written) left = left.concat(await clearFolder(this.#objects, folder, [...names]));
      // The outer folder last, now that its inner ones are gone.
      if (this.#written.size > 1 && left.length === 0) await this.#objects.delete(this.#folder).catch(() => undefined);
    }
    if (left.length > 0) this.#say("clean_up", "warning", `${left.length} objects of the check could not be removed`);
    return this.#report(start, written, wrong, left);
  }

  get #isHttp(): boolean {
    return !["host", "memory"].includes(this.#info.kind);
  }

  #report(start: number, written: boolean, wrong: string | null | undefined, left: string[]): StoreReport {
    const failed = (...names: string[]): boolean => this.#checks.some((c) => c.status === "failed" && names.includes(c.name));
    const nothing = !written && !failed("write") && this.#checks.some((c) => c.name === "ranges" && c.status === "skipped");
    const readable = !nothing && !failed("write", "ranges", "listing", "many", "names", "encoding");
    const trusted = !failed("read_after_write", "many", "listing");
    const commits = !written || wrong === undefined ? "unknown" : wrong === null && trusted ? "safe" : "unsafe";
    const { kind } = this.#info;
    const uri = kind === "host" ? this.#store.uri : this.#info.uri;
    const verdict = nothing ? `nothing was found out about ${uri}: nothing can be written there with these credentials, and there is no table to read`
      : !readable ? `${uri} cannot be used: ${this.#checks.find((c) => c.status === "failed")?.seen ?? ""}`
      : commits === "safe" ? `${uri} can be read and committed to`
        : commits === "unknown" ? `${uri} can be read; nothing can be written there with these credentials`
          : `${uri} is read-only for commits: the store ${wrong ?? this.#checks.find((c) => c.status === "failed")?.seen ?? "is not consistent"}`;
    return {
      uri, kind, create_if_absent: { ...this.#store.createIfAbsent }, checks: this.#checks, readable, commits, verdict,
      remedies: remediesFor(this.#info, this.#checks, this.#options.origin), requests: this.#requests, ms: Math.round(performance.now() - start), left,
    };
  }

  #say(name: string, status: StoreCheck["status"], seen: string): void {
    const check: StoreCheck = { name, status, seen };
    this.#checks.push(check);
    this.#options.onProgress?.(check);
  }

  /** Runs one check: a sentence is fine, a thrown one is not. True when it passed. */
  async #step(name: string, work: () => Promise<string | Finding>): Promise<boolean> {
    try {
      const found = await work();
      if (typeof found === "string") this.#say(name, "ok", found);
      else this.#say(name, found.status, found.seen);
      return typeof found === "string" || found.status !== "failed";
    } catch (error) {
      const failure = WhetstoneError.from(error);
      if (failure.code === "ABORTED" || failure.code === "ENGINE_CRASHED" || failure.code === "INTERNAL") throw failure;
      const away = failure.code === "TABLE_NOT_FOUND" || ((failure.code === "STORE_UNREACHABLE" || failure.code === "TIMEOUT") && failure.detail["status"] === undefined);
      if (name === "write" && away) throw failure;
      // That nothing may be written is no fault of the store; that something else comes back is.
      const refused = failure.code === "STORE_DENIED" || failure.code === "STORE_FULL" || typeof failure.detail["status"] === "number";
      this.#say(name, name === "write" && refused ? "warning" : "failed", failure.message);
      return false;
    }
  }

  async #put(path: string, data: Uint8Array): Promise<string> {
    const full = this.#remember(path);
    await this.#objects.put(full, data).catch((error: unknown) => {
      // A refusal leaves nothing that would have to be removed.
      const { code, detail } = WhetstoneError.from(error);
      if (code === "STORE_DENIED" || code === "TABLE_NOT_FOUND" || [405, 501].includes(detail["status"] as number)) this.#written.get(full.slice(0, full.lastIndexOf("/")))?.delete(full.slice(full.lastIndexOf("/") + 1));
      throw error;
    });
    return full;
  }

  #remember(path: string): string {
    const full = `${this.#folder}/${path}`;
    const at = full.lastIndexOf("/");
    const folder = full.slice(0, at);
    const names = this.#written.get(folder) ?? new Set();
    // Inner folders are cleared before the one that holds them.
    if (!this.#written.has(folder)) {
      const others = [...this.#written];
      this.#written.clear();
      this.#written.set(folder, names);
      for (const [key, value] of others) this.#written.set(key, value);
    }
    names.add(full.slice(at + 1));
    return full;
  }

  async #write(): Promise<string> {
    for (const size of [1, 2 * MIB, 0]) {
      const path = await this.#put(size === 2 * MIB ? "pattern" : `size-${size}`, pattern(size));
      const got = await this.#objects.get(path).catch((error: unknown) => {
        const failure = WhetstoneError.from(error);
        if (failure.detail["not_found"] === true) throw problem(`an object of ${size} bytes is not there when it is read, although the store answered that it was written`);
        throw failure;
      });
      same(got, pattern(size), `an object of ${size} bytes`);
    }
    return "objects of 0 bytes, 1 byte and 2 MiB come back as they were written";
  }

  async #names(): Promise<string> {
    const names = ["a b", "plus+and%20percent%2F", "é-ü-漢-🦀", "q?&=#;,:@!$'()*~[]", "_versions.manifest", "-dash_"];
    for (const name of names) {
      const path = await this.#put(`names/${name}`, new TextEncoder().encode(name));
      const got = new TextDecoder().decode(await this.#objects.get(path));
      if (got !== name) throw problem(`the object ${JSON.stringify(name)} holds ${JSON.stringify(got)}: two names mean the same object`);
    }
    const listed = (await this.#objects.list(`${this.#folder}/names`)).map((entry) => entry.name);
    const missing = names.filter((name) => !listed.includes(name));
    if (missing.length > 0 || listed.length !== names.length) {
      throw problem(`the listing spells names in another way: ${JSON.stringify(missing)} are listed as ${JSON.stringify(listed.filter((name) => !names.includes(name)))}`);
    }
    return `${names.length} names that need escaping are written, read and listed as they are`;
  }

  /** Ranges at all edges of an object whose bytes are known. */
  async #ranges(path: string, all: Uint8Array): Promise<string | Finding> {
    const n = all.length;
    let whole = 0;
    const edges = [[0, 1], [0, n], [n - 1, n], [1, n - 1], [n >> 1, (n >> 1) + 1], [n - 10, n], [12_345 % n, Math.min(n, 12_345 % n + 70_000)]] as const;
    for (const [start, end] of edges) {
      if (start < 0 || start >= end) continue;
      same(await this.#objects.get(path, start, end), all.subarray(start, end), `bytes ${start} to ${end} of ${n}`);
      if (this.#last !== undefined && this.#last.bytes > end - start) whole += 1;
    }
    for (const [start, end] of [[n, n + 1], [n - 5, n + 5], [n + 1000, n + 1001]] as const) {
      const got = await this.#objects.get(path, start, end).catch((error: unknown) => WhetstoneError.from(error));
      if (got instanceof Uint8Array) throw problem(`bytes ${start} to ${end} of an object of ${n} were answered with ${got.length} bytes`);
      if (!["CORRUPT_FILE", "STORE_RANGES"].includes(got.code)) throw got;
    }
    if (whole > 0) return { status: "failed", seen: "the whole object is sent when a range is asked for: large columns could not be read" };
    return `ranges at every edge of ${n} bytes are exact; ranges beyond the end are refused`;
  }

  /** Without the right to write there may be a table to read. */
  async #rangesOfTable(): Promise<string | Finding> {
    const found = await this.#manifest();
    if (found === null) return { status: "skipped", seen: "nothing can be written, and there is no table to read" };
    return this.#ranges(found.path, await this.#objects.get(found.path));
  }

  async #manifest(): Promise<{ path: string; size: number } | null> {
    const listed = await this.#objects.list("_versions").catch(() => []);
    const manifest = listed.filter((entry) => entry.name.endsWith(".manifest") && entry.size > 10)[0];
    return manifest === undefined ? null : { path: `_versions/${manifest.name}`, size: manifest.size };
  }

  /** Some object that can be read in part, for the checks that only look at headers. */
  async #readable(written: boolean): Promise<string | null> {
    return written ? `${this.#folder}/pattern` : (await this.#manifest())?.path ?? null;
  }

  async #listing(): Promise<string> {
    // Keys whose order by bytes is none by words, a folder beside an object of almost its name, and a folder inside.
    const names = ["b", "B", "a", "a-", "a0", "a.b", "aa", "é", "~", "0", "00"];
    for (const name of names) await this.#put(`list/${name}`, pattern(3));
    await this.#put("list/folder/inner", pattern(4));
    await this.#put("list2/other", pattern(5));
    const listed = await this.#objects.list(`${this.#folder}/list`);
    expectNames(listed, names);
    if (listed.some((entry) => entry.size !== 3)) throw problem("the listing states wrong sizes");
    if ((await this.#objects.list(`${this.#folder}/nothing`)).length > 0) throw problem("a folder that does not exist has a listing");
    await this.#ordered(`${this.#folder}/list`, names, 3);
    return "objects directly in a folder are listed once, with their sizes; folders beside and inside are kept apart";
  }

  /** The first page of a store that lists in order is what comes first by bytes: the newest version is found there. */
  async #ordered(folder: string, names: string[], max: number): Promise<void> {
    if (!this.#info.ordered) return;
    const first = (await this.#objects.list(folder, max)).map((entry) => entry.name);
    const wanted = [...names].sort(byBytes).slice(0, first.length);
    if (first.length === 0 || first.length > max || first.some((name, i) => name !== wanted[i])) {
      throw problem(`the first page of a listing is ${first.join(", ")}, by bytes it should be ${wanted.join(", ")}`);
    }
  }

  async #many(): Promise<string> {
    const names = Array.from({ length: MANY }, (_, i) => `${String(i).padStart(5, "0")}.manifest`);
    for (let at = 0; at < MANY; at += 50) await Promise.all(names.slice(at, at + 50).map((name) => this.#put(`many/${name}`, pattern(1))));
    const listed = await this.#objects.list(`${this.#folder}/many`);
    expectNames(listed, names);
    await this.#ordered(`${this.#folder}/many`, names, 10);
    return `${MANY} objects in one folder are listed completely, each once`;
  }

  async #readAfterWrite(): Promise<string> {
    for (let i = 0; i < 10; i += 1) {
      const text = `generation ${i}`;
      const path = await this.#put("again", new TextEncoder().encode(text));
      const got = new TextDecoder().decode(await this.#objects.get(path));
      if (got !== text) throw problem(`an object just overwritten is read as it was before (${got}, not ${text})`);
      await this.#put(`fresh/${i}`, pattern(i + 1));
      const listed = await this.#objects.list(`${this.#folder}/fresh`);
      if (listed.length !== i + 1) throw problem(`a listing right after a write names ${listed.length} of ${i + 1} objects: a commit could go unseen`);
    }
    return "what was just written is read and listed at once, ten times of ten";
  }

  async #delete(): Promise<string> {
    const path = await this.#put("gone/object", pattern(3));
    await this.#objects.delete(path);
    const got = await this.#objects.get(path).then(() => null, (error: unknown) => WhetstoneError.from(error));
    if (got === null) throw problem("an object is still there after it was deleted");
    if (got.detail["not_found"] !== true) throw got;
    if ((await this.#objects.list(`${this.#folder}/gone`)).length > 0) throw problem("a deleted object is still listed");
    await this.#objects.delete(path);
    return "a deleted object is gone at once; deleting it again is no error";
  }

  /** `null`: safe; a sentence: not; `undefined`: could not be found out. */
  async #creates(): Promise<string | null | undefined> {
    let wrong: string | null | undefined;
    const path = this.#remember("alone");
    const alone = await this.#step("create", async () => {
      const found = await createTwice(this.#objects, path);
      wrong = found.wrong;
      if (found.wrong !== null) return { status: "failed", seen: `the store ${found.wrong}` };
      const { loser } = this.#store.createIfAbsent;
      return `an object is created once; the second writer is told so (${loser}) and changes nothing`;
    });
    if (!alone) {
      this.#say("race", "skipped", "there is nothing to race for");
      return wrong;
    }
    const contenders = this.#options.contenders ?? CONTENDERS;
    const rounds = this.#options.rounds ?? ROUNDS;
    const writers = Array.from({ length: contenders }, () => this.#open());
    for (let i = 0; i < rounds; i += 1) this.#remember(`race-${i}`);
    wrong = undefined;
    try {
      await this.#step("race", async () => {
        const found = await raceRounds(writers, this.#folder, rounds);
        wrong = found.wrong;
        if (found.wrong !== null) return { status: "failed", seen: `the store ${found.wrong}` };
        return `in ${rounds} races of ${contenders} writers one created the object each time, and it is the winner's`;
      });
    } finally {
      for (const writer of writers) writer.close();
    }
    return wrong;
  }

  async #clock(): Promise<string | Finding> {
    const path = await this.#put("clock/now", pattern(1));
    const entry = (await this.#objects.list(path.slice(0, path.lastIndexOf("/"))))[0];
    if (entry === undefined || entry.modified === null) return { status: "skipped", seen: "listings state no times" };
    const apart = entry.modified - Date.now();
    if (Math.abs(apart) <= SKEW_MS) return "its clock and that of this machine agree within five minutes";
    const minutes = Math.round(Math.abs(apart) / 60_000);
    return { status: "warning", seen: `its clock is ${minutes} minutes ${apart > 0 ? "ahead of" : "behind"} this machine's: signatures may be refused, and ages are wrong` };
  }

  /** Servers that compress on the way garble ranges, if only for clients that accept it. */
  async #encoding(written: boolean): Promise<string | Finding> {
    let path = await this.#readable(written);
    if (path === null) return { status: "skipped", seen: "there is nothing to read" };
    let size = 10;
    if (written) {
      const text = new TextEncoder().encode(JSON.stringify({ rows: Array.from({ length: 500 }, () => "compress me") }));
      size = text.length;
      path = await this.#put("compressible.json", text);
      same(await this.#objects.get(path, 100, 300), text.subarray(100, 300), "a range of a file that compresses well");
    }
    if (inBrowser()) return "ranges arrive as they are stored";
    // Pages ask for unencoded ranges; other clients (caches, some runtimes) do not.
    const lenient = this.#open({ "accept-encoding": "gzip" });
    try {
      const got = await lenient.get(path, size >> 1, (size >> 1) + 5).catch((error: unknown) => WhetstoneError.from(error));
      if (got instanceof WhetstoneError && got.code === "STORE_ENCODING") return { status: "warning", seen: "a client that accepts gzip is sent pieces of a compressed stream as ranges; switch compression off for these objects" };
      const encoding = this.#last?.headers?.["content-encoding"];
      if (encoding !== undefined && encoding !== "identity") return { status: "warning", seen: `a client that accepts gzip is sent ${encoding} instead of a range; switch compression off for these objects` };
    } finally {
      lenient.close();
    }
    return "ranges are sent unencoded, also to clients that accept gzip";
  }
}

/** @internal A check that neither passed nor threw. */
export interface Finding {
  status: StoreCheck["status"];
  seen: string;
}

function problem(message: string): WhetstoneError {
  return new WhetstoneError("STORE_UNSAFE", message);
}

/** Bytes that differ from their neighbours, and between positions 251 apart. */
function pattern(size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, i) => (i * 7 + (i >> 8) * 13) % 251);
}

function same(got: Uint8Array, wanted: Uint8Array, what: string): void {
  if (got.length !== wanted.length) throw problem(`${what}: ${got.length} bytes came back instead of ${wanted.length}`);
  const at = got.findIndex((byte, i) => byte !== wanted[i]);
  if (at >= 0) throw problem(`${what}: byte ${at} came back changed; something on the way rewrites bodies`);
}

function expectNames(listed: ListedObject[], names: string[]): void {
  const got = listed.map((entry) => entry.name);
  const twice = got.filter((name, i) => got.indexOf(name) !== i);
  if (twice.length > 0) throw problem(`the listing names ${twice.length} objects more than once, e.g. ${twice[0]}`);
  const there = new Set(got);
  const missing = names.filter((name) => !there.has(name));
  if (missing.length > 0) throw problem(`the listing omits ${missing.length} of ${names.length} objects, e.g. ${missing[0]}`);
  const wanted = new Set(names);
  const extra = got.filter((name) => !wanted.has(name));
  if (extra.length > 0) throw problem(`the listing names objects that are not in the folder, e.g. ${extra[0]}`);
}

function byBytes(a: string, b: string): number {
  const [x, y] = [new TextEncoder().encode(a), new TextEncoder().encode(b)];
  const at = x.findIndex((byte, i) => byte !== y[i]);
  return at < 0 ? x.length - y.length : (x[at] as number) - (y[at] ?? -1);
}
