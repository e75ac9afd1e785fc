// The open table: loading, stepping through versions, and what to do when the engine has to be replaced.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { EngineClient, EngineFailure, failureOf } from "./engine/client.js";
import type { AuditReport, CommittingEvent, ErrorDocument, ForecastOptions, HistoryDocument, JobPlan, LayoutForecast, Pair, Probe, ProgressEvent, Ran, SegmentContents, SegmentParts, SqlResult } from "./engine/documents.js";
import type { Counted, OpenedTable, StoreKeys } from "./engine/protocol.js";
import type { Choice } from "./jobs/choice.js";
import { accessTo, folderOf, isFolder } from "./lib/folders.js";
import { fateOf, forget, isFirst, keep, keptFor } from "./lib/commits.js";
import type { Fate } from "./lib/commits.js";
import { keeping, trying } from "./lib/keeping.js";
import { remember } from "./lib/recent.js";
import { withoutSecrets } from "./lib/url.js";
import { makeGroups } from "./map/groups.js";
import type { Groups } from "./map/groups.js";
import { isSandbox, JOB_OF } from "./sandbox/calls.js";
import type { Act, ActReport } from "./sandbox/calls.js";
import type { Found } from "./parts/Unfinished.js";

export interface Session {
  table: OpenedTable | null;
  /** Something is on its way; the last table stays on screen meanwhile. */
  loading: boolean;
  failure: ErrorDocument | null;
  requests: Counted;
  reload: () => void;
  plan: (choice: Choice, signal: AbortSignal) => Promise<JobPlan>;
  run: (plan: JobPlan, workers: number, signal: AbortSignal, progress: (event: ProgressEvent) => void) => Promise<{ ran: Ran; table: OpenedTable }>;
  /** Does one thing to a sandbox table, and shows the version it committed. */
  act: (act: Act, signal: AbortSignal, rows?: (rows: number, total: number) => void) => Promise<ActReport>;
  /** What is inside the segments of an index, at the version on screen. */
  inspect: (index: string, signal: AbortSignal) => Promise<SegmentContents[]>;
  /** Pages, zones, keys or tokens of one segment. */
  parts: (index: string, uuid: string, offset: number, limit: number, signal: AbortSignal) => Promise<SegmentParts>;
  audit: (index: string, sample: number | null, signal: AbortSignal, audited: (rows: number, total: number) => void) => Promise<AuditReport>;
  probe: (index: string, op: string, value: string | null, signal: AbortSignal) => Promise<Probe>;
  forecast: (options: ForecastOptions, signal: AbortSignal) => Promise<LayoutForecast>;
  /** What a compaction would rewrite together at the version on screen; null while it is not known, and where the planner refuses the table. */
  groups: Groups | null;
  /** Why the planner refuses the version on screen. */
  noGroups: ErrorDocument | null;
  /** The fragment reuse history of the version on screen. */
  history: (signal: AbortSignal) => Promise<HistoryDocument>;
  explainPair: (a: number, b: number, signal: AbortSignal) => Promise<Pair>;
  /** Answers a statement; one that would change the table only comes back with its plan. */
  sql: (text: string, signal: AbortSignal) => Promise<SqlResult>;
  /** Another version of the table, without showing it. */
  version: (version: number, signal: AbortSignal) => Promise<OpenedTable>;
  /** For what only some tables have: the engine, and the handle of the table in it. */
  engine: { client: EngineClient; handle: (signal: AbortSignal) => Promise<number>; call: EngineClient["call"] };
  /** Shows the version a run committed. */
  adopt: (table: OpenedTable) => void;
  /** Commits of this table that were on their way when their tab ended. */
  unfinished: Found[];
  dismiss: (transaction: string) => void;
}

const NOT_PLANNED = { groups: null, failure: null };
/** Versions kept for stepping back and forth without asking the store again. */
const KEPT_VERSIONS = 48;

/** A folder of this machine is used with the browser's leave, which is asked for where somebody just clicked to change it. */
async function mayUse(target: string | null, mode: "read" | "readwrite"): Promise<void> {
  if (target === null || !isFolder(target)) return;
  const folder = await folderOf(target);
  if (!folder) throw new EngineFailure({ code: "TABLE_NOT_FOUND", message: "this browser keeps no folder under this address: choose the folder again", detail: {}, changed: "nothing" });
  if (await accessTo(folder, mode, mode === "readwrite") === "granted") return;
  const what = mode === "read" ? "read" : "write";
  throw new EngineFailure({ code: "STORE_DENIED", message: `the browser does not let this page ${what} the folder ${folder.name} without asking you again`, detail: { path: folder.name, folder: target }, changed: "nothing" });
}

/** The version in which a compaction that failed had reserved fragment ids: `null` when it had none, `"unknown"` when that cannot be found out. */
async function reservedBy(client: EngineClient, handle: number, sent: ReadonlySet<string>): Promise<number | null | "unknown"> {
  try {
    for (const uuid of sent) {
      const found = await client.call("transaction", { handle, uuid });
      if (found?.version != null && isFirst("compaction", found)) return found.version;
    }
    return null;
  } catch {
    return "unknown";
  }
}

export function useSession(client: EngineClient, target: string | null, version: number | null, keys: StoreKeys | null): Session {
  const [table, setTable] = useState<OpenedTable | null>(null);
  const [loading, setLoading] = useState(target !== null);
  const [failure, setFailure] = useState<ErrorDocument | null>(null);
  const [requests, setRequests] = useState<Counted>({ count: 0, bytes: 0 });
  const [attempt, setAttempt] = useState(0);
  /** What `table` was opened from, so that another version of it is one manifest and not another opening. */
  const opened = useRef<{ target: string; keys: StoreKeys | null; generation: number; handle: number; latest: number } | null>(null);
  const kept = useRef(new Map<number, OpenedTable>());
  const latest = useRef(0);
  const onScreen = useRef<string | null>(null);

  client.onRequests = setRequests;

  const accept = useCallback((next: OpenedTable, from: string) => {
    opened.current = { target: from, keys, generation: client.generation, handle: next.handle, latest: next.latest };
    const cache = kept.current;
    // Kept versions carry the list of versions of their time: a new version makes it stale.
    if (latest.current !== next.latest) cache.clear();
    latest.current = next.latest;
    cache.delete(next.show.version);
    cache.set(next.show.version, next);
    if (cache.size > KEPT_VERSIONS) cache.delete(cache.keys().next().value as number);
    setTable(next);
    setFailure(null);
    setLoading(false);
  }, [keys]);

  useEffect(() => {
    if (target === null) {
      opened.current = null;
      onScreen.current = null;
      kept.current.clear();
      setTable(null);
      setFailure(null);
      setLoading(false);
      return;
    }
    const abort = new AbortController();
    const known = opened.current;
    const same = known !== null && known.target === target && known.keys === keys && known.generation === client.generation;
    const wanted = version ?? (same ? known.latest : null);
    const cached = same && wanted !== null ? kept.current.get(wanted) : undefined;
    if (cached) {
      setTable(cached);
      setFailure(null);
      setLoading(false);
      return;
    }
    setLoading(true);
    if (!same) {
      kept.current.clear();
      setFailure(null);
      // A reload keeps what is on screen until the new state is there; another table starts from nothing.
      if (onScreen.current !== target) {
        setTable(null);
        setRequests({ count: 0, bytes: 0 });
      }
    }
    onScreen.current = target;
    const work = same && wanted !== null
      ? client.call("at", { handle: known.handle, version: wanted }, { signal: abort.signal })
      : mayUse(target, "read").then(() => client.call("open", { target, version, keys }, { signal: abort.signal }));
    work.then(
      (next) => {
        if (abort.signal.aborted) return;
        accept(next, target);
        if (!same && !isSandbox(target)) trying((storage) => remember(storage, target));
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        setFailure(failureOf(error));
        setLoading(false);
      },
    );
    return () => abort.abort();
  }, [target, version, keys, attempt]);

  const reload = useCallback(() => {
    kept.current.clear();
    opened.current = null;
    setAttempt((n) => n + 1);
  }, []);

  /** The handle of the table, opened again when the engine was replaced since. */
  const handle = useCallback(async (signal: AbortSignal): Promise<number> => {
    const known = opened.current;
    if (known && known.generation === client.generation) return known.handle;
    if (target === null) throw new Error("No table is open.");
    const next = await client.call("open", { target, version: null, keys }, { signal });
    opened.current = { target, keys, generation: client.generation, handle: next.handle, latest: next.latest };
    return next.handle;
  }, [target, keys]);

  const plan = useCallback(async (choice: Choice, signal: AbortSignal) => {
    const at = await handle(signal);
    const made = await client.call("plan", { handle: at, choice }, { signal });
    // Somebody wrote meanwhile: the screen follows, so that the plan and the map show the same fragments.
    if (target !== null && made.v_plan !== opened.current?.latest) accept(await client.call("reload", { handle: at }, { signal }), target);
    return made;
  }, [handle, accept, target]);
  /** Transactions of this tab, whose outcome this tab hears itself. */
  const own = useRef(new Set<string>());
  /** Keeps what `work` is about to commit until it is known what became of it. */
  const announced = useCallback(async <A>(job: string, at: number, work: (committing: (event: CommittingEvent) => void) => Promise<A>): Promise<A> => {
    const sent = new Set<string>();
    const done = () => trying((storage) => sent.forEach((transaction) => forget(storage, transaction)));
    const committing = (event: CommittingEvent) => {
      // Another transaction of the same run: what became of the one before is settled, or nothing would follow it.
      done();
      sent.add(event.transaction);
      own.current.add(event.transaction);
      // A table in memory ends with the tab: nobody will ask.
      if (!event.uri.startsWith("memory:")) trying((storage) => keep(storage, { ...event, job, target: withoutSecrets(target ?? ""), at: Date.now() }));
    };
    try {
      const answer = await work(committing);
      done();
      return answer;
    } catch (error) {
      const failure = failureOf(error);
      if (failure.changed === "unknown") sent.forEach((transaction) => own.current.delete(transaction)); // the next look at the table asks
      else done();
      if (job !== "compaction" || sent.size === 0 || failure.code === "ABORTED" || failure.changed === "unknown") throw error;
      throw new EngineFailure({ ...failure, detail: { ...failure.detail, reserved: await reservedBy(client, at, sent) } });
    }
  }, [target]);
  const run = useCallback(async (work: JobPlan, workers: number, signal: AbortSignal, progress: (event: ProgressEvent) => void) => {
    await mayUse(target, "readwrite");
    const at = await handle(signal);
    // A trim that takes no record out is a prune and nothing more.
    const job = work.kind === "trim" && work.outcome === "nothing" ? "prune" : work.kind;
    const { report, table: next } = await announced(job, at, (committing) => client.call("run", { handle: at, plan: work, workers }, { signal, progress, committing }));
    return { ran: { kind: work.kind, plan: work, report } as Ran, table: next };
  }, [handle, announced, target]);

  const [unfinished, setUnfinished] = useState<Found[]>([]);
  const known = opened.current;
  useEffect(() => {
    setUnfinished([]);
    const storage = keeping();
    if (!table || target === null || !known || !storage) return;
    const abort = new AbortController();
    const kept = keptFor(storage, withoutSecrets(target)).filter((commit) => !own.current.has(commit.transaction));
    void Promise.all(kept.map(async (commit): Promise<Found> => {
      const fate = await client.call("transaction", { handle: known.handle, uuid: commit.transaction }, { signal: abort.signal }).then(
        (found): Fate => fateOf(commit, found, table.latest, Date.now()),
        (error: unknown): Fate => ({ is: "unknown", why: failureOf(error).message }),
      );
      return { commit, fate };
    })).then((found) => { if (!abort.signal.aborted) setUnfinished(found); });
    return () => abort.abort();
  }, [target, known?.handle, table?.latest]);
  const dismiss = useCallback((transaction: string) => {
    trying((storage) => forget(storage, transaction));
    setUnfinished((all) => all.filter(({ commit }) => commit.transaction !== transaction));
  }, []);
  const another = useCallback(async (wanted: number, signal: AbortSignal) => {
    const cached = kept.current.get(wanted);
    if (cached) return cached;
    return client.call("at", { handle: await handle(signal), version: wanted }, { signal });
  }, [handle]);
  /** Asks about the version on screen. Its handle may be gone, after a crash or many steps; then the version is opened once more. */
  const onShow = useCallback(async <A>(signal: AbortSignal, work: (handle: number) => Promise<A>): Promise<A> => {
    const version = table?.show.version;
    if (table && opened.current?.generation === client.generation) {
      try {
        return await work(table.handle);
      } catch (error) {
        if (!(failureOf(error).detail as { closed?: boolean } | null)?.closed) throw error;
      }
    }
    const again = await handle(signal);
    return work(version === undefined ? again : (await client.call("at", { handle: again, version }, { signal })).handle);
  }, [table, handle]);
  const inspect = useCallback((index: string, signal: AbortSignal) => onShow(signal, (at) => client.call("inspect", { handle: at, index }, { signal })), [onShow]);
  const parts = useCallback((index: string, uuid: string, offset: number, limit: number, signal: AbortSignal) => onShow(signal, (at) => client.call("parts", { handle: at, index, uuid, offset, limit }, { signal })), [onShow]);
  const audit = useCallback(
    (index: string, sample: number | null, signal: AbortSignal, audited: (rows: number, total: number) => void) => onShow(signal, (at) => client.call("audit", { handle: at, index, sample }, { signal, rows: audited })),
    [onShow],
  );
  const probe = useCallback((index: string, op: string, value: string | null, signal: AbortSignal) => onShow(signal, (at) => client.call("probe", { handle: at, index, op, value }, { signal })), [onShow]);
  const forecast = useCallback((options: ForecastOptions, signal: AbortSignal) => onShow(signal, (at) => client.call("forecast", { handle: at, options }, { signal })), [onShow]);
  const explainPair = useCallback((a: number, b: number, signal: AbortSignal) => onShow(signal, (at) => client.call("explainPair", { handle: at, a, b }, { signal })), [onShow]);
  const [planned, setPlanned] = useState<{ of: OpenedTable; groups: Groups | null; failure: ErrorDocument | null } | null>(null);
  useEffect(() => {
    if (!table || planned?.of === table) return;
    const abort = new AbortController();
    onShow(abort.signal, (at) => client.call("groups", { handle: at }, { signal: abort.signal })).then(
      (found) => { if (!abort.signal.aborted) setPlanned({ of: table, groups: found && makeGroups(found), failure: null }); },
      (error: unknown) => { if (!abort.signal.aborted) setPlanned({ of: table, groups: null, failure: failureOf(error) }); },
    );
    return () => abort.abort();
  }, [table]);
  const { groups, failure: noGroups } = planned?.of === table && planned !== null ? planned : NOT_PLANNED;
  /** Histories that were read, by the version they belong to: the view and the details pane ask for the same. */
  const histories = useRef(new WeakMap<OpenedTable, HistoryDocument>());
  const history = useCallback(async (signal: AbortSignal) => {
    const known = table && histories.current.get(table);
    if (known) return known;
    const read = await onShow(signal, (at) => client.call("history", { handle: at }, { signal }));
    if (table) histories.current.set(table, read);
    return read;
  }, [onShow]);
  const sql = useCallback((text: string, signal: AbortSignal) => onShow(signal, (at) => client.call("sql", { handle: at, text }, { signal })), [onShow]);
  const adopt = useCallback((next: OpenedTable) => {
    // What was done to a table that nobody looks at any more is there when it is opened again.
    if (target !== null && onScreen.current === target) accept(next, target);
  }, [target, accept]);

  const act = useCallback(async (one: Act, signal: AbortSignal, rows?: (rows: number, total: number) => void) => {
    const at = await handle(signal);
    const { report, table: next } = await announced(JOB_OF[one.do], at, (committing) => client.call("sandboxAct", { handle: at, act: one }, { signal, rows, committing }));
    adopt(next);
    return report;
  }, [handle, announced, adopt]);
  const engine = useMemo(() => ({ client, handle, call: client.call.bind(client) as EngineClient["call"] }), [client, handle]);

  return { engine, table, loading, failure, requests, reload, plan, run, act, inspect, parts, audit, probe, forecast, groups, noGroups, history, explainPair, sql, version: another, adopt, unfinished, dismiss };
}
