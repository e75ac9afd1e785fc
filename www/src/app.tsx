// The screen: one table, its health, its indexes, its layout. All of its state is in the address, except keys.

import type { JSX } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { EngineClient, failureOf } from "./engine/client.js";
import type { ErrorDocument } from "./engine/documents.js";
import type { StoreKeys } from "./engine/protocol.js";
import { count, tableName } from "./lib/format.js";
import { accessTo, folderOf, keepFolder, tablesIn } from "./lib/folders.js";
import { healthLines, layoutLine } from "./lib/health.js";
import type { HealthLine } from "./lib/health.js";
import { find } from "./lib/search.js";
import { formatState, parseState, VIEWS, withoutSecrets } from "./lib/url.js";
import type { PageState, Selection } from "./lib/url.js";
import { LayoutMap } from "./map/LayoutMap.js";
import type { GhostRun } from "./map/draw.js";
import { makeLayout } from "./map/model.js";
import { laneBoxes, lanesHeight } from "./map/lanes.js";
import { Details } from "./parts/Details.js";
import { ErrorPanel } from "./parts/ErrorPanel.js";
import { HealthLines, Meters } from "./parts/Health.js";
import { IndexList } from "./parts/IndexList.js";
import { OpenPanel, useSamples } from "./parts/OpenPanel.js";
import type { PickedFolder } from "./parts/OpenPanel.js";
import { FragmentTable, RunTables } from "./parts/TableView.js";
import { useTheme } from "./parts/theme.js";
import { Unfinished } from "./parts/Unfinished.js";
import { VersionLine } from "./parts/VersionLine.js";
import { Console } from "./console/Console.js";
import { HistoryView } from "./history/HistoryView.js";
import { WhatIf } from "./whatif/WhatIf.js";
import { VersionDiffPanel } from "./versions/VersionDiff.js";
import { Icon, latestOnly } from "./parts/basics.js";
import type { Job } from "./jobs/choice.js";
import { JobDialog } from "./jobs/JobDialog.js";
import { LessonPanel } from "./lessons/LessonPanel.js";
import { actsBefore, lessonOf } from "./lessons/lessons.js";
import { lessonTarget, useLesson } from "./lessons/useLesson.js";
import { isSandbox, SANDBOX } from "./sandbox/calls.js";
import { NewTable } from "./sandbox/NewTable.js";
import { SandboxBar } from "./sandbox/SandboxBar.js";
import { SandboxCards } from "./sandbox/SandboxCards.js";
import { useMaking } from "./sandbox/useMaking.js";
import { useSession } from "./session.js";

const NO_GHOSTS: GhostRun[] = [];
const VIEW_NAMES = { map: "map", table: "table", history: "history", "what-if": "what if", sql: "SQL" } as const;

export function App(): JSX.Element {
  const [state, setState] = useState<PageState>(() => parseState(window.location.search));
  const [keys, setKeys] = useState<StoreKeys | null>(null);
  const [opening, setOpening] = useState(false);
  const [ghosts, setGhosts] = useState<GhostRun[]>(NO_GHOSTS);
  const theme = useTheme();
  const samples = useSamples(opening || state.url === null);
  const client = useMemo(() => new EngineClient(), []);
  const making = useMaking(client);
  const [naming, setNaming] = useState(false);
  const session = useSession(client, making.making ? null : state.url, state.version, keys);
  const { table } = session;
  const search = useRef<HTMLInputElement>(null);

  const change = useCallback((part: Partial<PageState>) => setState((old) => ({ ...old, ...part })), []);
  useAddress(state, setState);

  const layout = useMemo(() => (table ? makeLayout(table.columns, table.show.indices) : null), [table]);
  const health = useMemo(() => (table ? healthLines(table.show) : null), [table]);
  // Until the planner has answered for a new version the line stays as it was: nothing moves twice.
  const lastLine = useRef<HealthLine | null>(null);
  lastLine.current = table === null ? null : layoutLine(session.groups, session.noGroups) ?? lastLine.current;
  const old = table !== null && table.show.version !== table.latest;

  useEffect(() => {
    document.title = state.url ? `${tableName(state.url)} – Whetstone` : "Whetstone";
  }, [state.url]);

  /** Folder that was handed over and holds no table, or several: the panel lists them. */
  const [picked, setPicked] = useState<PickedFolder | null>(null);
  const open = useCallback((target: string, given: StoreKeys | null) => {
    setKeys(given);
    setOpening(false);
    setState((before) => ({ ...before, url: withoutSecrets(target), version: null, selection: null, window: null, query: "", job: null, lesson: null }));
  }, []);
  const openFolder = useCallback(async (folder: FileSystemDirectoryHandle) => {
    try {
      const tables = await tablesIn(folder);
      if (tables.length === 1) {
        setPicked(null);
        open(await keepFolder(tables[0]!), null);
        return;
      }
      setPicked({ name: folder.name, tables, trouble: null });
    } catch (error) {
      setPicked({ name: folder.name, tables: [], trouble: failureOf(error).message });
    }
    setOpening(true);
  }, [open]);
  const { make } = making;
  /** The table of a lesson is made anew, with everything done that comes before the step. */
  const makeLesson = useCallback((id: string, step: number) => {
    const lesson = lessonOf(id);
    if (lesson) make({ name: lesson.id, options: lesson.table, acts: actsBefore(lesson, step) });
  }, [make]);
  const startLesson = useCallback((id: string) => {
    setKeys(null);
    setOpening(false);
    makeLesson(id, 0);
    setState((before) => ({ ...before, url: lessonTarget(id), version: null, selection: null, window: null, query: "", job: null, changes: false, view: "map", lesson: { id, step: 0 } }));
  }, [makeLesson]);
  const lesson = useLesson(session, state.lesson, state.url, making.making, makeLesson);
  const select = useCallback((selection: Selection | null) => change({ selection }), [change]);
  const setWindow = useCallback((window: [number, number] | null) => change({ window }), [change]);
  const startJob = useCallback((job: Job) => change({ job }), [change]);

  // An address or a folder dropped anywhere opens its table.
  useEffect(() => {
    const dropped = (event: DragEvent) => {
      const file = [...(event.dataTransfer?.items ?? [])].find((one) => one.kind === "file") as { getAsFileSystemHandle?: () => Promise<FileSystemHandle | null> } | undefined;
      if (file?.getAsFileSystemHandle) {
        event.preventDefault();
        void file.getAsFileSystemHandle().then((handle) => {
          if (handle?.kind === "directory") void openFolder(handle as FileSystemDirectoryHandle);
        }, () => undefined);
        return;
      }
      const text = event.dataTransfer?.getData("text/uri-list") || event.dataTransfer?.getData("text/plain") || "";
      const address = text.split(/\r?\n/).find((line) => /^(https?|s3):\/\//i.test(line.trim()))?.trim();
      if (!address) return;
      event.preventDefault();
      open(address, null);
    };
    const over = (event: DragEvent) => {
      const kinds = event.dataTransfer?.types ?? [];
      if (kinds.includes("text/uri-list") || kinds.includes("text/plain") || kinds.includes("Files")) event.preventDefault();
    };
    window.addEventListener("dragover", over);
    window.addEventListener("drop", dropped);
    return () => {
      window.removeEventListener("dragover", over);
      window.removeEventListener("drop", dropped);
    };
  }, [open, openFolder]);

  useEffect(() => {
    const keysDown = (event: KeyboardEvent) => {
      const typing = event.target instanceof Element && event.target.closest("input, textarea, select, dialog") !== null;
      if (event.key === "/" && !typing) {
        event.preventDefault();
        search.current?.focus();
      } else if (event.key === "Escape" && !typing) {
        setOpening(false);
        select(null);
      }
    };
    window.addEventListener("keydown", keysDown);
    return () => window.removeEventListener("keydown", keysDown);
  }, [select]);

  const answer = layout && state.query ? find(layout, state.query) : null;
  const { job } = state;
  // A dialog that is open stays, whatever its job does to the index: a drop must still show its report.
  const openJob = useRef<Job | null>(null);
  const known = layout !== null && job !== null && (!("index" in job) || layout.lanes.some((lane) => lane.index.name === job.index));
  if (known || job === null) openJob.current = job;
  const shownJob = openJob.current !== null && openJob.current === job ? job : null;
  const started = state.url !== null;
  const sandboxCards = <SandboxCards client={client} onOpen={(target) => open(target, null)} onNew={() => { setOpening(false); setNaming(true); }} onLesson={startLesson} />;

  return (
    <div class="page">
      <a class="skip" href="#main">Skip to the table</a>
      <header class="top">
        <a class="brand" href="./" onClick={(event) => { event.preventDefault(); change({ ...parseState(""), url: null }); }}><Mark /> Whetstone</a>
        {started && (
          <>
            <button type="button" class="table-name" aria-expanded={opening} title={state.url ?? undefined} onClick={() => setOpening(!opening)}><span>{tableName(state.url!)}</span><Icon name="chevron" /></button>
            <VersionLine versions={table?.versions ?? null} version={table?.show.version ?? null} latest={table?.latest ?? null} changes={state.changes} onVersion={(version) => change({ version })} onChanges={(changes) => change({ changes })} />
            <form
              class={`search${state.query && !answer ? " is-missed" : ""}`} role="search"
              onSubmit={(event) => {
                event.preventDefault();
                if (answer) select(answer);
              }}
            >
              <Icon name="search" />
              <input ref={search} type="search" value={state.query} placeholder="fragment, segment, index" aria-label="Search a fragment, a segment or an index" onInput={(event) => change({ query: event.currentTarget.value })} />
              <kbd aria-hidden="true">/</kbd>
            </form>
            <button type="button" class="icon-button" aria-label="Reload the table" title="Reload the table" onClick={session.reload} disabled={session.loading}><Icon name="reload" /></button>
          </>
        )}
        <button type="button" class="icon-button theme-button" aria-label={`Colours: ${theme.choice}`} title={`Colours: ${theme.choice}`} onClick={theme.next}><Icon name="contrast" /></button>
      </header>
      <div class={`progress-line${(session.loading || making.making) && started ? " is-on" : ""}`} role="presentation" />
      {started && opening && <div class="open-drop"><OpenPanel samples={samples} current={state.url} picked={picked} onOpen={open} onFolder={openFolder}>{sandboxCards}</OpenPanel></div>}
      <main id="main" tabIndex={-1}>
        {started && <h1 class="sr-only">{tableName(state.url!)}</h1>}
        {!started && (
          <div class="welcome">
            <div class="welcome-text">
              <h1>Keep a Lance table’s indexes sharp.</h1>
              <p>See what each index covers, plan the missing work, and do it from this tab. The table stays where it lies; nothing goes through a server of ours.</p>
            </div>
            <OpenPanel samples={samples} current={null} picked={picked} onOpen={open} onFolder={openFolder}>{sandboxCards}</OpenPanel>
          </div>
        )}
        {started && lesson && (
          <LessonPanel state={lesson} view={state.view} onStep={(step) => change({ lesson: { id: lesson.lesson.id, step } })} onView={(view) => change({ view })}
            onLesson={startLesson} onClose={() => change({ lesson: null })} />
        )}
        {started && !lesson && isSandbox(state.url) && <SandboxBar key={state.url} session={session} making={making} target={state.url} old={old} onNew={() => setNaming(true)} onGone={() => change({ ...parseState(""), url: null })} />}
        {started && making.failure && <ErrorPanel failure={making.failure} target={state.url} onOther={{ label: "New table…", act: () => setNaming(true) }} />}
        {started && session.failure && !table && !making.failure && (
          <ErrorPanel failure={session.failure} target={state.url} onRetry={session.reload}
            onOther={closedFolder(session.failure) ? { label: "Let the page read it", act: () => void allowFolder(state.url!, session.reload) } : state.version !== null ? { label: "Open the latest version", act: () => change({ version: null }) } : { label: "Open another table", act: () => setOpening(true) }} />
        )}
        {started && !(session.failure && !table) && (
          <>
            <Meters table={table} requests={session.requests} />
            {session.failure && <ErrorPanel failure={session.failure} target={state.url} onRetry={session.reload} onOther={{ label: "Back to the latest", act: () => change({ version: null }) }} />}
            {old && table && <p class="note old-note"><Icon name="info" /> Version {count(table.show.version)} is shown as it was. The latest is {count(table.latest)}. <button type="button" class="link" onClick={() => change({ version: null })}>Go to the latest</button></p>}
            {state.changes && table && <VersionDiffPanel session={session} table={table} target={state.url} onClose={() => change({ changes: false })} />}
            <Unfinished found={session.unfinished} onForget={session.dismiss} onAsk={session.reload} />
            <HealthLines lines={health} layout={lastLine.current} old={old} onJob={startJob} onShow={(index) => select({ kind: "index", name: index })} />
            <div class="columns">
              <IndexList layout={layout} selection={state.selection} old={old} onSelect={select} onJob={startJob} />
              <section class="panel layout" aria-labelledby="layout-title">
                <div class="panel-head">
                  <h2 id="layout-title">Layout</h2>
                  <div class="segmented" role="group" aria-label="View">
                    {VIEWS.map((view) => <button key={view} type="button" aria-pressed={state.view === view} onClick={() => change({ view })}>{VIEW_NAMES[view]}</button>)}
                  </div>
                  {state.view === "map" && (
                    <>
                      <div class="segmented" role="group" aria-label="Width of a fragment">
                        {(["rows", "equal"] as const).map((widths) => <button key={widths} type="button" aria-pressed={state.widths === widths} title={widths === "rows" ? "A fragment is as wide as its rows" : "All fragments are equally wide"} onClick={() => change({ widths })}>{widths}</button>)}
                      </div>
                      <label class="check small"><input type="checkbox" checked={state.groups} onChange={(event) => change({ groups: event.currentTarget.checked })} /> <span>groups</span></label>
                      <button type="button" class="button small" {...latestOnly(old || layout === null)} onClick={() => startJob({ kind: "compact", rows: null })}>Compact…</button>
                      <button type="button" class="button small" disabled={state.window === null} onClick={() => setWindow(null)} title="Show the whole table (0)">Fit</button>
                    </>
                  )}
                </div>
                {!layout && <div class="map-bones" style={{ height: `${lanesHeight(laneBoxes(3, state.groups)) + 40}px` }} aria-hidden="true" />}
                {layout && state.view === "sql" && <Console session={session} layout={layout} target={state.url!} old={old} />}
                {layout && state.view === "history" && <HistoryView session={session} layout={layout} selection={state.selection} target={state.url!} old={old} onSelect={select} onJob={startJob} />}
                {layout && state.view !== "sql" && state.view !== "history" && layout.columns.ids.length === 0 && layout.retired.length === 0 && <p class="empty">This version has no fragments. Once rows are appended, they show up here.</p>}
                {layout && state.view === "what-if" && layout.columns.ids.length > 0 && <WhatIf session={session} layout={layout} target={state.url} old={old} themeStamp={theme.stamp} onJob={startJob} />}
                {layout && (state.view === "map" || state.view === "table") && (layout.columns.ids.length > 0 || layout.retired.length > 0) && (state.view === "map"
                  ? <>
                      <LayoutMap layout={layout} groups={session.groups} widths={state.widths} showGroups={state.groups} selection={state.selection} window={state.window} ghosts={ghosts} themeStamp={theme.stamp} onSelect={select} onWindow={setWindow} />
                      <Legend retired={layout.retired.length > 0} unknown={layout.lanes.some((lane) => !lane.index.coverage_known)} groups={state.groups} />
                      <div class="sr-only"><RunTables layout={layout} /></div>
                    </>
                  : <FragmentTable layout={layout} onSelect={(id) => select({ kind: "fragment", id })} />)}
              </section>
            </div>
            <Details session={session} layout={layout} selection={state.selection} target={state.url} onSelect={select} />
          </>
        )}
      </main>
      <footer class="foot"><a href="docs/guide.html">Guide</a> <a href="docs/five-sets.html">The five sets</a> <a href="docs/layout.html">Layout</a> <a href="docs/command.html">Command</a> <a href="docs/api.html">API</a> <a href="docs/cors.html">CORS</a> <a href="docs/errors.html">Errors</a></footer>
      {naming && (
        <NewTable client={client} onClose={() => setNaming(false)} onMake={(what) => {
          setNaming(false);
          make(what);
          open(`${SANDBOX}${what.name}`, null);
        }} />
      )}
      {shownJob && layout && !old && (
        <JobDialog key={JSON.stringify(shownJob)} session={session} layout={layout} job={shownJob} segments={state.segments} target={state.url!}
          onSegments={(segments) => change({ segments })} onGhosts={setGhosts} onClose={() => change({ job: null })} />
      )}
    </div>
  );
}

function closedFolder(failure: ErrorDocument): boolean {
  return failure.code === "STORE_DENIED" && typeof (failure.detail as { folder?: unknown } | null)?.folder === "string";
}

async function allowFolder(target: string, then: () => void): Promise<void> {
  const folder = await folderOf(target);
  if (folder && await accessTo(folder, "read", true) === "granted") then();
}

/** Keeps the address bar and the state equal. Opening and stepping make history entries; looking around does not. */
function useAddress(state: PageState, setState: (state: PageState) => void): void {
  const last = useRef(state);
  useEffect(() => {
    const text = formatState(state) || window.location.pathname;
    const before = last.current;
    last.current = state;
    if (formatState(state) === window.location.search) return;
    const turn = before.url !== state.url || JSON.stringify(before.job) !== JSON.stringify(state.job);
    if (turn) window.history.pushState(null, "", text);
    else window.history.replaceState(null, "", text);
  }, [state]);
  useEffect(() => {
    const back = () => setState(parseState(window.location.search));
    window.addEventListener("popstate", back);
    return () => window.removeEventListener("popstate", back);
  }, []);
}

function Legend({ retired, unknown, groups }: { retired: boolean; unknown: boolean; groups: boolean }): JSX.Element {
  return (
    <ul class="legend">
      <li><span class="swatch swatch-any" aria-hidden="true" /> a colour per segment</li>
      <li><span class="swatch swatch-hatch" aria-hidden="true" /> not indexed</li>
      {unknown && <li><span class="swatch swatch-unknown" aria-hidden="true" /> unknown</li>}
      {retired && <li><span class="swatch swatch-ghost" aria-hidden="true" /> retired fragment</li>}
      <li><span class="swatch swatch-deleted" aria-hidden="true" /> deleted rows</li>
      {groups && <li><span class="legend-cross" aria-hidden="true">╳</span> small, and kept apart from its neighbours</li>}
    </ul>
  );
}

function Mark(): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
      <path d="M2.5 16.5 18.5 5l3 4.2-16 11.3z" class="mark-stone" />
      <path d="M2.5 16.5 5.5 20.5 21.5 9.2" class="mark-edge" />
    </svg>
  );
}
