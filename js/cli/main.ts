// The `whetstone` command.
import { readFileSync } from "node:fs";
import { readFile, realpath, stat, writeFile } from "node:fs/promises";
import { once } from "node:events";
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { checkStore, open, Store, WhetstoneError } from "../node.js";
import type { CompactionOptions, CompactionPlan, OpenOptions, PartsOptions, Plan, PlanCreateIndexOptions, PlanRefreshOptions, RequestEvent, SegmentContents, StoreOptions, Table } from "../node.js";
import { keepVerdicts } from "../race.js";
import { serve } from "../serve.js";
import { storeFor } from "../stores.js";
import { progress } from "./progress.js";
import { storeCheckLine, storeReport } from "./render-store.js";
import * as render from "./render.js";
import { compactionPlan, compactionReport, layout as renderLayout } from "./render-layout.js";
import { printable, printableLines } from "./text.js";
import { help, parse, UsageError } from "./usage.js";
import type { Invocation } from "./usage.js";
import { fileVerdicts } from "./verdicts.js";

/** Exit status: done, failed with nothing committed, wrong usage, outcome not known. */
const EXIT = { done: 0, failed: 1, usage: 2, unknown: 3 } as const;

/** Runs one command line; answers the exit status. */
export async function main(argv: string[]): Promise<number> {
  // Whoever reads our output may stop reading (`| head`): that is not an error.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => { if (error.code === "EPIPE") process.exit(EXIT.done); });
  const interrupt = new AbortController();
  const onSignal = (): void => interrupt.abort();
  keepVerdicts(fileVerdicts());
  process.once("SIGINT", onSignal);
  process.once("SIGTERM", onSignal);
  try {
    const invocation = parse(argv);
    if (invocation.command === null || invocation.flag("help")) {
      process.stdout.write(help(invocation.command));
      return EXIT.done;
    }
    if (invocation.command === "audit") return await audit(invocation, interrupt.signal);
    if (invocation.command === "store-check") return await storeCheck(invocation, interrupt.signal);
    return await run(invocation, interrupt.signal) ?? EXIT.done;
  } catch (error) {
    return failed(WhetstoneError.from(error), argv[0], argv.includes("--json"));
  } finally {
    process.off("SIGINT", onSignal);
    process.off("SIGTERM", onSignal);
  }
}

/** Commands that change the table, and the kind of plan each runs. */
const JOBS = { refresh: "refresh", "create-index": "create_index", "drop-index": "drop_index", merge: "merge" } as const;
type JobName = keyof typeof JOBS;

function isJob(command: string | null | undefined): command is JobName {
  return typeof command === "string" && Object.hasOwn(JOBS, command);
}

/** What a job that failed says about the table, where its sentence does not. */
function unchanged(error: WhetstoneError, command: string | undefined): string {
  if (!isJob(command) || error instanceof UsageError || /nothing (was|is) (changed|committed)|left on the store/i.test(error.message)) return "";
  const stop = /[.!?]$/.test(error.message) ? "" : ".";
  if (error.changed === "nothing") return `${stop} Nothing was changed`;
  if (error.changed !== "staged") return "";
  const left = error.detail["staged"];
  return `${stop} Nothing was committed; left on the store, named by no manifest: ${Array.isArray(left) ? printable(left).join(", ") : "what was built"}`;
}

function failed(error: WhetstoneError, command: string | undefined, json: boolean): number {
  if (json) print({ error: error.toJSON() });
  else {
    const excerpt = error.detail["excerpt"];
    const lines = typeof excerpt === "string" ? excerpt.split("\n").map((text) => `  ${printable(text)}\n`).join("") : "";
    process.stderr.write(`whetstone: ${printable(error.message)}${unchanged(error, command)} [${error.code}]\n${lines}`);
  }
  if (error instanceof UsageError) return EXIT.usage;
  const unclear = error.code === "COMMIT_UNKNOWN" || error.changed === "unknown" || error.changed === "committed";
  return unclear ? EXIT.unknown : EXIT.failed;
}

function print(document: unknown): void {
  process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
}

/** The document on stdout, as JSON or as text. */
function answer<T>(invocation: Invocation, document: T, text: (document: T) => string): void {
  if (invocation.flag("json")) print(document);
  else process.stdout.write(`${text(printable(document))}\n`);
}

/** Answers the exit status when it is not that of what is done. */
async function run(invocation: Invocation, signal: AbortSignal): Promise<number | void> {
  if (invocation.command === "serve") return serveFolder(invocation, signal);
  const [target = "", second] = invocation.arguments;
  const planning = planOptions(invocation);
  const workers = invocation.number("workers", 1);
  const file = invocation.text("plan");
  const given = file === undefined || !isJob(invocation.command) ? undefined : await readPlan(file, JOBS[invocation.command], second ?? "");
  using table = await open(target, { ...openOptions(invocation, target), signal });
  switch (invocation.command) {
    case "show":
      return answer(invocation, await table.show({ signal }), render.show);
    case "fragments":
      return answer(invocation, { ...heading(table), fragments: await table.fragments(undefined, { signal }) }, (d) => render.fragments(d.fragments));
    case "segments": {
      const found = second === undefined ? await table.indexes({ signal }) : [await table.index(second, { signal })];
      const indices = found.map(({ name, type, segments }) => ({ name, type, segments }));
      if (second === undefined) return answer(invocation, { ...heading(table), indices }, (d) => render.segments(d.indices));
      const stretch = { ...count(invocation, "offset"), ...count(invocation, "limit"), signal };
      const uuid = invocation.text("segment");
      if (uuid !== undefined) return answer(invocation, await table.parts(second, uuid, stretch), render.parts);
      const contents = await contentsOf(table, second, stretch);
      answer(invocation, { ...heading(table), indices, contents }, (d) => `${render.segments(d.indices, d.contents)}${render.contents(d.contents)}`);
      return contents?.some((segment) => render.unreadable(segment) !== null) ? EXIT.failed : EXIT.done;
    }
    case "column":
      return await column(invocation, table, second ?? "", signal);
    case "plan":
      return answer(invocation, await table.planRefresh(second ?? "", { ...planning, signal }), render.plan);
    case "refresh":
    case "create-index":
    case "drop-index":
    case "merge":
      return await job(invocation, table, given ?? await planJob(invocation, table, { ...planning, signal }), { ...(workers === undefined ? {} : { workers }), signal });
    case "probe": {
      const [, , op = "", value] = invocation.arguments;
      return answer(invocation, await table.probe(second ?? "", op, value, { signal }), render.probe);
    }
    case "sql":
      return await sql(invocation, table, second ?? "", { ...(workers === undefined ? {} : { workers }), signal });
    case "compact":
      return await compact(invocation, table, planning, { ...(workers === undefined ? {} : { workers }), signal });
    case "compaction":
      return await compaction(invocation, table, planning, signal);
    case "history":
      return answer(invocation, await table.history({ signal }), render.history);
    case "trim":
      if (invocation.flag("dry-run")) return answer(invocation, await table.planTrim({ signal }), render.trimPlan);
      return answer(invocation, await table.trim({ signal }), render.trimReport);
    case "prune":
      if (invocation.flag("dry-run")) return answer(invocation, await table.planPrune({ signal }), render.prunePlan);
      return answer(invocation, await table.prune({ signal }), render.pruneReport);
    case "gc": {
      const age = duration(invocation.text("older-than"));
      const options = { ...(age === undefined ? {} : { olderThanMs: age }), signal };
      if (!invocation.flag("remove")) return answer(invocation, await table.planGc(options), render.gcPlan);
      return answer(invocation, await table.gc({ ...options, dryRun: false }), render.gcReport);
    }
    case "transaction":
      return answer(invocation, await table.transaction(second ?? "", { signal }), (found) => render.transaction(second ?? "", found));
    case "discard": {
      const plan = await table.planDiscard(await readDocument(second ?? ""), { signal });
      if (invocation.flag("dry-run")) return answer(invocation, plan, render.discard);
      return answer(invocation, await table.run(plan, { signal }), render.removal);
    }
    case "orphans": {
      const age = duration(invocation.text("older-than"));
      const list = await table.orphans({ ...(age === undefined ? {} : { olderThan: age }), signal });
      if (!invocation.flag("remove")) return answer(invocation, list, render.orphans);
      return answer(invocation, await table.run(list, { signal }), render.removal);
    }
    case "audit":
    case null:
  }
}

/** Does an index say what its column says? That it does not is a failure of what was asked. */
async function audit(invocation: Invocation, signal: AbortSignal): Promise<number> {
  const [target = "", index = ""] = invocation.arguments;
  const sample = invocation.number("sample", 1);
  using table = await open(target, { ...openOptions(invocation, target), signal });
  const report = await table.audit(index, { ...(sample === undefined ? {} : { sample }), signal });
  answer(invocation, report, render.audit);
  return report.findings.length === 0 ? EXIT.done : EXIT.failed;
}

async function sql(invocation: Invocation, table: Table, statement: string, options: { workers?: number; signal: AbortSignal }): Promise<void> {
  const alias = invocation.text("alias");
  const shown = progress(process.stderr, invocation.flag("quiet"));
  const result = await table.sql(statement, {
    ...options, ...(alias === undefined ? {} : { alias }), onProgress: (event) => shown.event(event),
  }).finally(() => shown.end());
  answer(invocation, result, render.rows);
}

async function compaction(invocation: Invocation, table: Table, { segments, params }: PlanRefreshOptions, signal: AbortSignal): Promise<void> {
  const options = compactionOptions(params);
  const plans = invocation.texts("compare");
  const pair = invocation.text("pair");
  const two = pair === undefined ? undefined : /^(\d+)\s*,\s*(\d+)$/.exec(pair);
  if (two === null) throw new UsageError(`--pair takes the ids of two fragments, as in --pair 3,4, not ${pair}`);
  const plan = await table.planCompaction({ ...options, signal });
  const forecast = await table.forecast({
    compaction: options, signal, ...(segments === undefined ? {} : { segments }), ...(plans.length === 0 ? {} : { plans }),
  });
  const document = {
    ...heading(table), plan, forecast,
    ...(two === undefined ? {} : { pair: await table.explainPair(Number(two[1]), Number(two[2]), { ...options, signal }) }),
  };
  return answer(invocation, document, renderLayout);
}

/** Rewrites fragments, or shows which would be. */
async function compact(invocation: Invocation, table: Table, { params }: PlanRefreshOptions, options: { workers?: number; signal: AbortSignal }): Promise<void> {
  const file = invocation.text("plan");
  const planned = { ...compactionOptions(params), ...(invocation.flag("defer") ? { defer_index_remap: true } : {}), signal: options.signal };
  const plan = file === undefined ? await table.planCompaction(planned) : await readDocument(file) as CompactionPlan;
  if (plan.kind !== "compaction") throw new UsageError(`${file ?? "the answer"} holds no plan of kind compaction`);
  if (invocation.flag("dry-run")) return answer(invocation, plan, compactionPlan);
  const shown = progress(process.stderr, invocation.flag("quiet"));
  const report = await table.run(plan, { ...options, onProgress: (event) => shown.event(event) }).finally(() => shown.end());
  answer(invocation, report, compactionReport);
}

/** What is inside the segments; `null` for methods this build does not read. */
async function contentsOf(table: Table, index: string, options: PartsOptions): Promise<SegmentContents[] | null> {
  try {
    return await table.inspect(index, options);
  } catch (error) {
    if (error instanceof WhetstoneError && error.code.startsWith("UNSUPPORTED")) return null;
    throw error;
  }
}

/** A number of things as an option of that name. */
function count<Name extends "offset" | "limit">(invocation: Invocation, name: Name): { [name in Name]?: number } {
  const value = invocation.number(name, 0);
  return value === undefined ? {} : { [name]: value } as { [name in Name]: number };
}

function heading(table: Table): { uri: string; version: number; branch: string | null } {
  return { uri: table.uri, version: table.version, branch: table.branch };
}

/** Rows printed at a time. */
const LINES = 65_536;

async function column(invocation: Invocation, table: Table, path: string, signal: AbortSignal): Promise<void> {
  const fragment = invocation.number("fragment", 0);
  const limit = invocation.number("limit", 0);
  const file = invocation.text("arrow");
  const where = { ...(fragment === undefined ? {} : { fragment }), signal };
  if (file !== undefined) {
    const bytes = await table.column(path, { ...where, ...(limit === undefined ? {} : { limit }) });
    await writeFile(file, bytes).catch((error: unknown) => {
      throw new UsageError(`${file} cannot be written (${(error as NodeJS.ErrnoException).code ?? String(error)}); the table was only read`);
    });
    if (invocation.flag("json")) print({ ...heading(table), column: path, file, bytes: bytes.length });
    return;
  }
  let left = limit ?? Infinity;
  let offset = 0;
  const rows: string[] = [];
  let head = { path, type: "" };
  do {
    const want = Math.min(LINES, left);
    const part = await table.columnLines(path, { ...where, offset, limit: want });
    head = part;
    if (invocation.flag("json")) rows.push(part.lines);
    else if (!process.stdout.write(printableLines(part.lines))) await once(process.stdout, "drain");
    offset += part.rows;
    left -= part.rows;
    if (part.rows < want) break;
  } while (left > 0);
  if (!invocation.flag("json")) return;
  const values = rows.join("").trimEnd().split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as unknown);
  print({ ...heading(table), column: head.path, type: head.type, values });
}

function planJob(invocation: Invocation, table: Table, options: PlanRefreshOptions & PlanCreateIndexOptions & { signal: AbortSignal }): Promise<Plan> {
  const [, name = "", column = "", method = ""] = invocation.arguments;
  switch (invocation.command) {
    case "create-index":
      return table.planCreateIndex(name, column, method, { ...options, train: !invocation.flag("deferred"), replace: invocation.flag("replace") });
    case "drop-index": return table.planDropIndex(name, options);
    case "merge": {
      const only = invocation.texts("only");
      return table.planMerge(name, { ...options, ...(only.length === 0 ? {} : { only }), ...(invocation.flag("reread") ? { reread: true } : {}) });
    }
    default: return table.planRefresh(name, options);
  }
}

/** Runs the plan of a job, or shows it. */
async function job(invocation: Invocation, table: Table, plan: Plan, options: { workers?: number; signal: AbortSignal }): Promise<void> {
  if (invocation.flag("dry-run")) return answer(invocation, plan, render.plan);
  const shown = progress(process.stderr, invocation.flag("quiet"));
  // The bar is gone before anything is printed where it was.
  const report = await table.run(plan, { ...options, onProgress: (event) => shown.event(event) }).finally(() => shown.end());
  answer(invocation, report, (document) => render.report(document, plan.kind));
}

/** A JSON file, or stdin. */
async function readDocument(file: string): Promise<object> {
  try {
    const document = JSON.parse(file === "-" ? readFileSync(0, "utf8") : await readFile(file, "utf8")) as unknown;
    if (typeof document === "object" && document !== null) return document;
  } catch (error) {
    throw new UsageError(`${file} holds no JSON document: ${(error as Error).message}`);
  }
  throw new UsageError(`${file} holds no JSON document`);
}

const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** An age such as 7d in milliseconds. */
function duration(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const found = /^(\d{1,9})([smhd])$/.exec(text);
  if (found === null) throw new UsageError(`--older-than takes a number with s, m, h or d, not ${text}`);
  return Number(found[1]) * UNITS[found[2] as keyof typeof UNITS];
}

async function readPlan(file: string, kind: Plan["kind"], index: string): Promise<Plan> {
  let plan: Plan;
  try {
    plan = JSON.parse(file === "-" ? readFileSync(0, "utf8") : await readFile(file, "utf8")) as Plan;
  } catch (error) {
    throw new UsageError(`${file} holds no plan: ${(error as Error).message}`);
  }
  if (typeof plan !== "object" || plan === null || plan.kind !== kind) throw new UsageError(`${file} holds no plan of kind ${kind}`);
  const name = plan.index?.name;
  if (typeof name !== "string" || name.toLowerCase() !== index.toLowerCase()) throw new UsageError(`${file} is a plan for the index ${String(name)}, not ${index}`);
  return plan;
}

/** What a store does. That it cannot be used, or not be committed to, is a failure of what was asked. */
async function storeCheck(invocation: Invocation, signal: AbortSignal): Promise<number> {
  const [target = ""] = invocation.arguments;
  const contenders = invocation.number("contenders", 2);
  const rounds = invocation.number("rounds", 1);
  const [origin, more] = invocation.texts("origin");
  if (more !== undefined) throw new UsageError("give --origin once");
  const store = storeOptions(invocation);
  const shown = !invocation.flag("quiet") && !invocation.flag("json");
  const report = await checkStore(target, {
    ...(store === undefined ? {} : { store }), ...(contenders === undefined ? {} : { contenders }), ...(rounds === undefined ? {} : { rounds }),
    ...(origin === undefined ? {} : { origin }), quick: invocation.flag("quick"), signal,
    ...(shown ? { onProgress: (check) => process.stdout.write(storeCheckLine(printable(check))) } : {}),
  });
  if (invocation.flag("json")) print(report);
  // What is to be pasted keeps its lines: it is our own text.
  else process.stdout.write(`${storeReport({ ...printable(report), remedies: report.remedies }, shown)}\n`);
  return report.readable && report.commits !== "unsafe" ? EXIT.done : EXIT.failed;
}

function storeOptions(invocation: Invocation): StoreOptions | undefined {
  const kind = invocation.text("store");
  if (kind !== undefined && !["s3", "azure", "gcs", "webdav", "static"].includes(kind)) throw new UsageError(`--store takes s3, azure, gcs, webdav or static, not ${kind}`);
  return kind === undefined ? undefined : { kind } as StoreOptions;
}

function openOptions(invocation: Invocation, target: string): OpenOptions {
  const version = invocation.number("at", 1);
  const tag = invocation.text("tag");
  const branch = invocation.text("branch");
  const given = storeOptions(invocation);
  if (version !== undefined && tag !== undefined) throw new UsageError("give --at or --tag, not both");
  let store: Store | StoreOptions | undefined = given;
  const leave = { ...(invocation.flag("unsafe-commits") ? { unsafe_commits: true } : {}), ...(invocation.flag("other-bases") ? { other_origins: true } : {}) };
  if (Object.keys(leave).length > 0) {
    const careful = storeFor(target, given);
    store = new Store({ ...careful.descriptor, ...leave }, careful.createIfAbsent, careful.callbacks, careful.uri);
  }
  const remote = /^(?!file:)[a-z][a-z0-9+.-]+:\/\//i.test(target);
  return {
    ...(version === undefined ? {} : { version }), ...(tag === undefined ? {} : { tag }), ...(branch === undefined ? {} : { branch }),
    ...(store === undefined ? {} : { store }), ...(remote && !invocation.flag("quiet") ? { onRequest: tellSilence } : {}),
  };
}

/** A request that got no answer for so long is told of: silence looks like work. */
const SILENCE_MS = 10_000;

function tellSilence({ method, path, ms, status }: RequestEvent): void {
  if (status === null && ms >= SILENCE_MS) process.stderr.write(`no answer to ${method} ${printable(path)} for ${Math.round(ms / 1000)} s\n`);
}

function planOptions(invocation: Invocation): PlanRefreshOptions {
  const segments = invocation.number("num-segments", 1);
  const maxBytes = invocation.number("max-bytes", 1);
  const params = Object.fromEntries(invocation.texts("param").map(parameter));
  return {
    ...(segments === undefined ? {} : { segments }), ...(maxBytes === undefined ? {} : { maxBytes }),
    ...(invocation.flag("absorb") ? { absorb: true } : invocation.flag("absorb-trailing") ? { absorb: "tiered" as const } : {}), ...(Object.keys(params).length === 0 ? {} : { params }),
  };
}

/** Options of a compaction; ids of fragments may be written as in 3,4. */
function compactionOptions(params: Record<string, unknown> | undefined): CompactionOptions {
  const { excluded_fragment_ids: given, ...options } = params ?? {};
  if (given === undefined || Array.isArray(given)) return params as CompactionOptions ?? {};
  if (!/^\d+( *, *\d+)*$/.test(String(given))) throw new UsageError(`excluded_fragment_ids takes fragment ids, as in 3,4, not ${String(given) === "" ? "nothing" : String(given)}`);
  return { ...options, excluded_fragment_ids: String(given).split(",").map(Number) };
}

function parameter(text: string): [string, unknown] {
  const at = text.indexOf("=");
  if (at < 1) throw new UsageError(`--param takes KEY=VALUE, not ${text}`);
  const value = text.slice(at + 1);
  try {
    return [text.slice(0, at), JSON.parse(value)];
  } catch {
    return [text.slice(0, at), value]; // a bare word is a text
  }
}

async function serveFolder(invocation: Invocation, signal: AbortSignal): Promise<void> {
  const [root = ""] = invocation.arguments;
  const port = invocation.number("port", 0) ?? 8080;
  if (port > 65_535) throw new UsageError(`--port takes a number up to 65535, not ${port}`);
  if (!(await isFolder(root))) throw new UsageError(`${root} is no folder`);
  const host = invocation.text("host");
  const page = invocation.text("page") ?? await builtPage();
  if (invocation.text("page") !== undefined && !(await isFolder(page ?? ""))) throw new UsageError(`${page} is no folder: build the page first`);
  const serving = await serve({
    root, port, writable: invocation.flag("writable"), origins: invocation.texts("origin"),
    ...(host === undefined ? {} : { host }), ...(page === undefined ? {} : { page }),
  }).catch((error: NodeJS.ErrnoException) => {
    const taken = error.code === "EADDRINUSE" ? `port ${port} is taken: give another with --port, or 0 for any` : `cannot listen: ${error.message}`;
    throw new WhetstoneError("INVALID_ARGUMENT", taken);
  });
  if (invocation.flag("json")) print({ url: serving.url, tables: serving.tables, writable: invocation.flag("writable") });
  else if (!invocation.flag("quiet")) {
    const what = `${await realpath(root)}${invocation.flag("writable") ? ", writable" : ""}`;
    process.stdout.write(`${page === undefined ? "" : `page     ${serving.url}\n`}tables   ${serving.tables}NAME.lance\nfolder   ${what}\n`);
  }
  if (invocation.flag("open")) openBrowser(serving.url);
  await new Promise<void>((resolve) => { if (signal.aborted) resolve(); else signal.addEventListener("abort", () => resolve(), { once: true }); });
  await serving.close();
}

async function isFolder(name: string): Promise<boolean> {
  return stat(name).then((found) => found.isDirectory(), () => false);
}

/** The page beside the package, or the one built in a checkout. */
async function builtPage(): Promise<string | undefined> {
  for (const place of ["../page/", "../../../www/dist/"]) {
    const folder = fileURLToPath(new URL(place, import.meta.url));
    if (await stat(`${folder}/index.html`).then(() => true, () => false)) return folder;
  }
  return undefined;
}

function openBrowser(url: string): void {
  const [command, ...args] = process.platform === "darwin" ? ["open", url] : process.platform === "win32" ? ["explorer", url] : ["xdg-open", url];
  const child = spawn(command as string, args, { stdio: "ignore", detached: true });
  child.on("error", () => process.stderr.write(`open ${url} in a browser\n`));
  child.unref();
}
