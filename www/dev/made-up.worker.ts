/// <reference lib="webworker" />
// Development only (webpack --env made-up): answers the page's calls from made-up tables, to look at states that real tables reach rarely.
// Addresses: made-up:users, made-up:large (100 000 fragments, 8 indexes), made-up:empty, made-up:bare, made-up:unknown, made-up:hostile, made-up:cors, made-up:slow,
// made-up:crash (its runs crash), made-up:fixture/NAME (the expected document of a fixture table, served at /expected/NAME.json).

import type { ErrorDocument, FragmentColumns, IndexInfo, RefreshPlan, SegmentInfo } from "../src/engine/documents.js";
import type { CallName, Calls, FromWorker, OpenedTable, ToWorker } from "../src/engine/protocol.js";

const scope = self as unknown as DedicatedWorkerGlobalScope;
const post = (message: FromWorker) => scope.postMessage(message);
const sleep = (ms: number, signal?: AbortSignal) => new Promise<void>((resolve, reject) => {
  const timer = setTimeout(resolve, ms);
  signal?.addEventListener("abort", () => {
    clearTimeout(timer);
    reject(fail("ABORTED", "the signal was aborted"));
  });
});

function fail(code: ErrorDocument["code"], message: string, detail: ErrorDocument["detail"] = {}): ErrorDocument {
  return { code, message, detail, changed: "nothing" };
}

function random(seed: number): () => number {
  let s = seed >>> 0;
  return () => {
    s = (s + 0x6d2b79f5) >>> 0;
    let t = Math.imul(s ^ (s >>> 15), s | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function uuid(next: () => number): string {
  const hex = Array.from({ length: 32 }, () => Math.floor(next() * 16).toString(16)).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
}

interface MadeIndex {
  name: string;
  type: string;
  column: string;
  segments: (number[] | null)[];
}

interface MadeTable {
  ids: number[];
  physical: number[];
  deleted: number[];
  indexes: MadeIndex[];
  seed: number;
}

const range = (from: number, to: number) => Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);

function make(name: string): MadeTable {
  const next = random(name.length * 977);
  const rows = (n: number, mean: number) => Array.from({ length: n }, () => Math.max(1, Math.round(mean * (0.4 + next() * (next() < 0.04 ? 6 : 1.2)))));
  if (name === "empty") return { ids: [], physical: [], deleted: [], seed: 1, indexes: [{ name: "id_idx", type: "BTree", column: "id", segments: [[]] }] };
  if (name === "bare") return { ids: range(0, 9), physical: rows(9, 5000), deleted: rows(9, 0), seed: 2, indexes: [] };
  if (name === "large") {
    const n = 100_000;
    const indexes = range(0, 8).map((k): MadeIndex => {
      const pieces = [1, 3, 7, 16, 40, 5, 2, 12][k]!;
      const end = k === 5 ? n : n - [3000, 1, 12_000, 0, 700, 0, 50_000, 5][k]!;
      const cuts = range(0, pieces + 1).map((i) => Math.floor((end / pieces) * i));
      const segments = range(0, pieces).map((i) => range(cuts[i]!, cuts[i + 1]!).filter((f) => k !== 5 || f !== 61_803));
      return { name: `column_${k}_idx`, type: k % 3 === 2 ? "ZoneMap" : "BTree", column: `column_${k}`, segments };
    });
    return { ids: range(0, n), physical: rows(n, 9000), deleted: Array.from({ length: n }, () => (next() < 0.02 ? Math.floor(next() * 2000) : 0)), seed: 3, indexes };
  }
  const n = 412;
  const live = range(0, n).filter((i) => ![57, 58, 190].includes(i));
  const physical = rows(live.length, 30_000);
  const deleted = live.map((_, i) => (next() < 0.1 ? Math.floor(physical[i]! * next() * 0.5) : 0));
  const interleaved = range(0, 9).map((k) => live.filter((f) => f < 405 && Math.floor(f / 12) % 9 === k));
  const indexes: MadeIndex[] = [
    { name: "user_id_idx", type: "BTree", column: "user_id", segments: [range(0, 250), range(250, 320), range(320, 360)] },
    { name: "name_fts", type: "Inverted", column: "name", segments: interleaved },
    { name: "city_zones", type: "ZoneMap", column: "address.city", segments: [range(0, n)] },
    { name: "score_idx", type: "BTree", column: "score", segments: [[]] },
  ];
  if (name === "unknown") indexes[0]!.segments = [null, range(250, 320)];
  if (name === "hostile") {
    indexes[0]!.name = "<img src=x onerror=alert(1)>\u202e\u0000idx";
    indexes[1]!.name = `a_very_long_index_name_${"x".repeat(180)}`;
    indexes[2]!.column = "\"; DROP TABLE users; --\n<script>alert(1)</script>";
  }
  return { ids: live, physical, deleted, seed: 4, indexes };
}

const made = new Map<string, MadeTable>();
const handles = new Map<number, { name: string; version: number }>();
let nextHandle = 1;
let requests = 0;
let read = 0;
const LATEST = new Map<string, number>();

function asked(bytes: number): void {
  requests += 1;
  read += bytes;
  post({ type: "requests", counts: { count: requests, bytes: read } });
}

async function fixture(name: string): Promise<MadeTable> {
  const answer = await fetch(`/expected/${name}.json`);
  const doc = await answer.json() as { fragments: { id: number; physical_rows: number; num_deletions: number }[]; indices: { name: string; type: string; field_names: string[]; segments: { fragment_ids: number[] | null }[] }[] };
  return {
    ids: doc.fragments.map((f) => f.id), physical: doc.fragments.map((f) => f.physical_rows), deleted: doc.fragments.map((f) => f.num_deletions), seed: 9,
    indexes: doc.indices.map((i) => ({ name: i.name, type: i.type, column: i.field_names.join(", "), segments: i.segments.map((s) => s.fragment_ids) })),
  };
}

function document(name: string, version: number): OpenedTable {
  const table = made.get(name)!;
  const latest = LATEST.get(name)!;
  const live = version >= latest ? table.ids : table.ids.slice(0, Math.max(1, Math.round(table.ids.length * (version / latest))));
  const alive = new Set(live);
  const rowsOf = new Map(live.map((id, i) => [id, table.physical[i]! - table.deleted[i]!]));
  const rows = live.reduce((sum, id) => sum + rowsOf.get(id)!, 0);
  const next = random(table.seed);
  const indices = table.indexes.map((index): IndexInfo => {
    const segments = index.segments.map((ids, s): SegmentInfo => {
      const id = uuid(next);
      const size = (ids?.length ?? 5) * 4211 + 900;
      return {
        uuid: id, fragment_ids: ids, effective_fragment_ids: ids?.filter((f) => alive.has(f)) ?? null, retired_fragment_ids: ids?.filter((f) => !alive.has(f) && f < 1000) ?? null,
        dataset_version: s + 1, index_version: 0, created_at: new Date(1.75e12 + s * 8.64e7).toISOString(), size_bytes: size, files: [{ path: "page_data.lance", size }],
        base_id: null, covering_fields: [], status: ids === null ? "unknown" : "ok", status_reason: null,
      };
    });
    const covered = new Set(segments.flatMap((s) => s.effective_fragment_ids ?? []));
    const indexed = [...covered].reduce((sum, f) => sum + rowsOf.get(f)!, 0);
    return {
      name: index.name, type: index.type, type_url: "", fields: [1], field_names: [index.column], num_segments: segments.length,
      indexed_percent: rows === 0 ? null : Math.floor((indexed / rows) * 10_000) / 100, coverage_known: !index.segments.includes(null),
      size_bytes: segments.reduce((sum, s) => sum + s.size_bytes!, 0), num_rows_indexed: indexed, num_rows_unindexed: rows - indexed,
      covered_live_fragments: [...covered], unindexed_fragments: live.filter((f) => !covered.has(f)), segments,
    };
  });
  const n = live.length;
  const columns: FragmentColumns = {
    ids: Uint32Array.from(live), physical_rows: Float64Array.from(table.physical.slice(0, n)), deleted_rows: Float64Array.from(table.deleted.slice(0, n)),
    bytes: Float64Array.from(table.physical.slice(0, n), (p) => p * 31), files: new Uint32Array(n).fill(1), coverage: [],
  };
  const handle = nextHandle++;
  handles.set(handle, { name, version });
  return {
    handle, columns, latest, schema: table.indexes.map((index, id) => ({ id, name: index.column, type: "int64", nullable: true, children: [] })), versions: range(1, latest + 1).map((v) => ({ version: v, size: 4000, modified: new Date(1.75e12 + v * 3.6e6).toISOString() })),
    show: {
      uri: `made-up:${name}`, version, branch: null, rows, data_storage_version: "2.2", has_stable_row_ids: false, reader_feature_flags: 0, writer_feature_flags: 0,
      fragments: { count: n, rows, deleted: table.deleted.slice(0, n).reduce((a, b) => a + b, 0), bytes: table.physical.slice(0, n).reduce((a, b) => a + b * 31, 0) },
      indices, warnings: [], requests: { count: requests, bytes: read, bytes_written: 0 },
    },
  };
}

type Handlers = { [N in CallName]: (argument: Calls[N]["argument"], signal: AbortSignal, id: number) => Promise<Calls[N]["answer"]> };

const handlers: Handlers = {
  async open({ target, version }, signal) {
    const name = target.replace(/^made-up:/, "");
    asked(1200);
    if (name === "slow") for (let i = 0; i < 60; i += 1) await sleep(250, signal).then(() => asked(5000));
    if (name === "cors") throw fail("STORE_CORS", "GET https://bucket.example/users.lance/_versions/ failed without an answer that a page may read: probably the store sends no CORS headers for this origin", { object: "https://bucket.example/users.lance/_versions/" });
    if (name === "missing") throw fail("TABLE_NOT_FOUND", "there is no Lance table at https://bucket.example/users: the folder _versions/ is empty or absent", { object: "_versions/" });
    if (!made.has(name)) made.set(name, name.startsWith("fixture/") ? await fixture(name.slice(8)) : make(name));
    if (!LATEST.has(name)) LATEST.set(name, 128);
    await sleep(60, signal);
    asked(61_000);
    return document(name, version ?? LATEST.get(name)!);
  },
  async at({ handle, version }, signal) {
    await sleep(20, signal);
    asked(3000);
    return document(handles.get(handle)!.name, version);
  },
  async reload({ handle }) {
    const { name } = handles.get(handle)!;
    return document(name, LATEST.get(name)!);
  },
  async plan({ handle, choice }, signal) {
    if (choice.kind !== "refresh") throw fail("UNSUPPORTED_METHOD", "a made-up table is only refreshed");
    const { index, segments } = choice;
    await sleep(250, signal);
    const { name } = handles.get(handle)!;
    const { show, columns } = document(name, LATEST.get(name)!);
    const info = show.indices.find((i) => i.name === index)!;
    const at = new Map([...columns.ids].map((id, i) => [id, i]));
    const work = info.unindexed_fragments ?? [];
    const n = Math.min(segments, work.length);
    const runs = range(0, n).map((i) => {
      const fragments = work.slice(Math.floor((work.length / n) * i), Math.floor((work.length / n) * (i + 1)));
      return { fragments, rows: fragments.reduce((sum, f) => sum + columns.physical_rows[at.get(f)!]! - columns.deleted_rows[at.get(f)!]!, 0), files: [] };
    });
    const target = { name: index, field_id: 1, column: info.field_names[0]!, logical_type: "int64", method: info.type.toUpperCase(), type_url: "", index_version: 0, params: { batch_size: 4096 }, row_domain: "address", details: null };
    const plan: RefreshPlan = {
      format: 1, kind: "refresh", table: show.uri, branch: null, v_plan: show.version, index: { ...target, params_from: "defaults" }, basis: { max_fragment_id: null, next_row_id: 0 },
      sets: { live: [...columns.ids], covered: info.covered_live_fragments ?? [], unindexed: work }, runs, heaviest_run_rows: Math.max(0, ...runs.map((r) => r.rows)),
      segments: info.segments.map((s) => ({ uuid: s.uuid, fate: (s.effective_fragment_ids?.length ?? 0) > 0 ? "KEPT" as const : "REMOVED" as const, why: (s.effective_fragment_ids?.length ?? 0) > 0 ? `covers ${s.effective_fragment_ids!.length} live fragments, none of them planned` : "covers no live fragment" })),
      absorbed: [], groups: { before: 14, after: 16 },
      tasks: runs.map((r, task) => ({ format: 1, kind: "build", table: show.uri, branch: null, v_plan: show.version, task, index: target, fragments: r.fragments, rows: r.rows, copy_of: null, max_bytes: null })),
      estimate: { requests: work.length * 3 + n * 3 + 4, read_bytes: work.length * 90_000, write_bytes: work.length * 61_000, memory_bytes: 41_000_000 }, warnings: [],
    };
    return plan;
  },
  async transaction() {
    return null;
  },
  async sandboxMake() { throw fail("UNSUPPORTED_FEATURE", "made-up tables are not made"); },
  async sandboxAct() { throw fail("UNSUPPORTED_FEATURE", "a made-up table does not change"); },
  async compaction() { throw fail("UNSUPPORTED_FEATURE", "a made-up table is not compacted"); },
  async archive() { throw fail("UNSUPPORTED_FEATURE", "a made-up table cannot be taken along"); },
  async sandboxRemove() { throw fail("UNSUPPORTED_FEATURE", "a made-up table stays"); },
  async sandboxes() { return { kept: false, names: [] }; },
  async forecast() { throw fail("UNSUPPORTED_METHOD", "a made-up table has no forecast"); },
  async groups() { return null; },
  async parts() { throw fail("UNSUPPORTED_METHOD", "a made-up table has no index files"); },
  async history() { throw fail("UNSUPPORTED_METHOD", "a made-up table has no history"); },
  async explainPair() { throw fail("UNSUPPORTED_METHOD", "a made-up table has no compaction"); },
  async sql() { throw fail("UNSUPPORTED_METHOD", "a made-up table answers no statements"); },
  async inspect() { throw fail("UNSUPPORTED_METHOD", "a made-up table has no files"); },
  async audit() { throw fail("UNSUPPORTED_METHOD", "a made-up table has no files"); },
  async probe() { throw fail("UNSUPPORTED_METHOD", "a made-up table has no files"); },
  async run({ handle, plan, workers }, signal, id) {
    if (plan.kind !== "refresh") throw fail("UNSUPPORTED_METHOD", "a made-up table is only refreshed");
    const { name } = handles.get(handle)!;
    const table = made.get(name)!;
    const queue = plan.tasks.map((task, i) => ({ task, i }));
    if (name === "crash") {
      await sleep(800, signal);
      throw fail("ENGINE_CRASHED", "the engine stopped while it was building segment 1: unreachable executed");
    }
    await Promise.all(range(0, Math.min(workers, queue.length)).map(async (worker) => {
      for (let job = queue.shift(); job; job = queue.shift()) {
        const steps = 40;
        for (let s = 0; s <= steps; s += 1) {
          await sleep(60 + worker * 25, signal);
          asked(20_000);
          post({ type: "progress", id, event: { phase: "build", task: job.i, tasks: plan.tasks.length, worker, state: s === steps ? "done" : "running", rows: Math.floor((job.task.rows * s) / steps), rows_total: job.task.rows } });
        }
      }
    }));
    post({ type: "progress", id, event: { phase: "commit", tasks: plan.tasks.length, state: "running", rows: 0, rows_total: 0 } });
    await sleep(500, signal);
    const index = table.indexes.find((i) => i.name === plan.index.name)!;
    const kept = plan.segments.map((s, i) => (s.fate === "KEPT" ? index.segments[i]! : null)).filter((s) => s !== null);
    index.segments = [...kept, ...plan.runs.map((r) => r.fragments)];
    const version = LATEST.get(name)! + 1;
    LATEST.set(name, version);
    const declared = plan.runs.flatMap((r) => r.fragments);
    return {
      report: {
        index_name: plan.index.name, fragments_indexed: declared.length - 1, segments_added: plan.runs.length, segments_removed: plan.segments.filter((s) => s.fate === "REMOVED").length,
        added: [], removed: [], declared, established: declared.slice(1), left_out: [{ fragment: declared[0]!, why: "its column was rewritten while the segment was built" }],
        version_before: version - 1, version, attempts: [{ version, outcome: "committed", why: null }], transaction: "0f0f0f0f-1111-4222-8333-444455556666", ms: 5230, requests: { count: 312, bytes: 4_100_000, bytes_written: 0 },
      },
      table: document(name, version),
    };
  },
};

const running = new Map<number, AbortController>();
scope.onmessage = (event: MessageEvent<ToWorker>) => {
  const message = event.data;
  if (message.type === "kept") return;
  if (message.type === "abort") {
    running.get(message.id)?.abort();
    return;
  }
  const { id, name, argument } = message;
  const control = new AbortController();
  running.set(id, control);
  const handler = handlers[name] as (argument: unknown, signal: AbortSignal, id: number) => Promise<unknown>;
  handler(argument, control.signal, id).then(
    (value) => post({ type: "answer", id, value }),
    (error: unknown) => post({ type: "failed", id, error: typeof error === "object" && error !== null && "code" in error ? error as ErrorDocument : fail("INTERNAL", String(error)) }),
  );
};
