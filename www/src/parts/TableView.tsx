// The layout as tables: for screen readers always, for everybody on request.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { count, name, plural, shortUuid } from "../lib/format.js";
import { UNKNOWN, coverRuns, liveRows } from "../map/model.js";
import type { Lane, Layout } from "../map/model.js";
import { Swatch } from "./basics.js";

/** Runs listed per index in the summary; fragments per page in the full table. */
const RUNS = 200;
const PAGE = 100;

/** Per index its stretches of fragments: what the lanes of the map show, in words. */
export function RunTables({ layout }: { layout: Layout }): JSX.Element {
  return (
    <>
      {layout.lanes.map((lane) => {
        const runs = coverRuns(lane, RUNS + 1);
        return (
          <table key={lane.index.name}>
            <caption>Index {name(lane.index.name)}: stretches of fragments</caption>
            <thead><tr><th scope="col">from fragment</th><th scope="col">to fragment</th><th scope="col">fragments</th><th scope="col">segment</th></tr></thead>
            <tbody>
              {runs.slice(0, RUNS).map((run) => (
                <tr key={run.from}>
                  <td>{layout.columns.ids[run.from]}</td><td>{layout.columns.ids[run.to - 1]}</td><td>{count(run.to - run.from)}</td><td>{coverText(lane, run.cover)}</td>
                </tr>
              ))}
              {runs.length > RUNS && <tr><td colSpan={4}>More stretches follow; the table view lists every fragment.</td></tr>}
            </tbody>
          </table>
        );
      })}
    </>
  );
}

function coverText(lane: Lane, cover: number): string {
  const segment = lane.segments[cover];
  return segment ? shortUuid(segment.uuid) : cover === UNKNOWN ? "unknown" : "not indexed";
}

export function FragmentTable({ layout, onSelect }: { layout: Layout; onSelect: (id: number) => void }): JSX.Element {
  const [page, setPage] = useState(0);
  const n = layout.columns.ids.length;
  const pages = Math.max(1, Math.ceil(n / PAGE));
  const at = Math.min(page, pages - 1);
  const rows = Array.from({ length: Math.min(PAGE, n - at * PAGE) }, (_, k) => at * PAGE + k);
  const { ids, deleted_rows: deleted } = layout.columns;
  return (
    <div class="fragment-table">
      <div class="table-scroll" tabIndex={0} role="region" aria-label="Fragments">
        <table>
          <thead>
            <tr>
              <th scope="col" class="num">fragment</th><th scope="col" class="num">live rows</th><th scope="col" class="num">deleted</th>
              {layout.lanes.map((lane) => <th scope="col" key={lane.index.name}>{name(lane.index.name)}</th>)}
            </tr>
          </thead>
          <tbody>
            {rows.map((i) => (
              <tr key={i}>
                <td class="num"><button type="button" class="link" onClick={() => onSelect(ids[i]!)}>{ids[i]}</button></td>
                <td class="num">{count(liveRows(layout.columns, i))}</td>
                <td class="num">{count(Number.isNaN(deleted[i]!) ? null : deleted[i])}</td>
                {layout.lanes.map((lane) => {
                  const segment = lane.segments[lane.cover[i]!];
                  return <td key={lane.index.name}>{segment ? <><Swatch slot={segment.colour} /> {shortUuid(segment.uuid)}</> : <span class="quiet">{coverText(lane, lane.cover[i]!)}</span>}</td>;
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div class="pager">
        <button type="button" class="button small" disabled={at === 0} onClick={() => setPage(at - 1)}>Previous</button>
        <span>{plural(n, "fragment")}, page {count(at + 1)} of {count(pages)}</span>
        <button type="button" class="button small" disabled={at >= pages - 1} onClick={() => setPage(at + 1)}>Next</button>
      </div>
    </div>
  );
}
