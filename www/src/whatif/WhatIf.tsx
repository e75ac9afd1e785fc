// What if: the layout as it is beside what several plans would make of it. Nothing is read but the manifest, and nothing is written.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { LayoutForecast } from "../engine/documents.js";
import { useAsked } from "../inside/useAsked.js";
import { compactCount, count, duration, name, plural } from "../lib/format.js";
import type { Layout } from "../map/model.js";
import { ErrorPanel } from "../parts/ErrorPanel.js";
import { Bone, Copyable, Icon, latestOnly } from "../parts/basics.js";
import type { Job } from "../jobs/choice.js";
import type { Session } from "../session.js";
import { nearestTarget, TARGETS } from "./lanes.js";
import { Strips } from "./Strips.js";

/** Fragments up to which layouts are drawn; beyond that every plan would carry its millions of ids over. */
const DRAWN = 200_000;
const MOST_SEGMENTS = 64;

export function WhatIf({ session, layout, target, old, themeStamp, onJob }: {
  session: Session; layout: Layout; target: string | null; old: boolean; themeStamp: number; onJob: (job: Job) => void;
}): JSX.Element {
  const [rows, setRows] = useState<number | null>(null);
  const [segments, setSegments] = useState(4);
  const [chosen, setChosen] = useState<string | null>(null);
  const [shown, setShown] = useState<{ forecast: LayoutForecast; ms: number } | null>(null);
  const version = session.table?.show.version ?? 0;
  const { asked, ask } = useAsked<LayoutForecast>(`${version}`);
  const drawn = layout.columns.ids.length <= DRAWN;
  const look = () => ask((signal) => session.forecast({ segments, columns: drawn, ...(rows === null ? {} : { compaction: { target_rows_per_fragment: rows } }) }, signal));
  useEffect(() => {
    const timer = setTimeout(look, shown ? 120 : 0);
    return () => clearTimeout(timer);
  }, [version, rows, segments]);
  // The last answer stays until the next is there: a slider must not make the page jump.
  useEffect(() => {
    if (asked.is === "answered") setShown({ forecast: asked.answer, ms: asked.ms });
  }, [asked]);
  if (asked.is === "failed") return <ErrorPanel failure={asked.error} target={target} onRetry={look} />;
  const forecast = shown?.forecast ?? null;
  const plan = forecast?.plans.find((one) => one.name === chosen) ?? forecast?.plans[0] ?? null;
  const now = rows ?? forecast?.compaction.target_rows_per_fragment ?? 1_048_576;
  return (
    <div class={`whatif${asked.is === "asking" && shown ? " is-stale" : ""}`} aria-busy={asked.is === "asking"}>
      <div class="whatif-choices">
        <label class="whatif-slider"><span>Rows a compaction aims at <b>{count(now)}</b></span>
          <input type="range" min={0} max={TARGETS.length - 1} step={1} value={nearestTarget(now)} aria-valuetext={`${now} rows`} onInput={(event) => setRows(TARGETS[Number(event.currentTarget.value)] ?? null)} />
        </label>
        <label class="whatif-slider"><span>Segments a refresh builds <b>{count(segments)}</b></span>
          <input type="range" min={1} max={MOST_SEGMENTS} step={1} value={segments} onInput={(event) => setSegments(Number(event.currentTarget.value))} />
        </label>
        <button type="button" class="button small" {...latestOnly(old)} onClick={() => onJob({ kind: "compact", rows })}>Compact…</button>
        {rows !== null && <button type="button" class="button small" onClick={() => setRows(null)}>As the table is configured</button>}
      </div>
      {!forecast && [0, 1, 2, 3].map((i) => <p key={i}><Bone width="100%" /></p>)}
      {forecast && (
        <>
          <div class="whatif-scroll" tabIndex={0} role="region" aria-label="Plans side by side">
            <table class="whatif-plans">
              <thead><tr><th scope="col">plan</th><th scope="col" class="num">fragments</th><th scope="col" class="num">segments</th><th scope="col" class="num" title="Groups of fragments that a compaction would merge">groups</th><th scope="col" class="num" title="Small fragments that stay, because other segments cover their small neighbours">frozen</th><th scope="col" class="num">rows indexed</th><th scope="col" class="num">rows rewritten</th></tr></thead>
              <tbody>
                <tr class="is-now"><th scope="row">now</th><Numbers summary={forecast.before} before={forecast.before} /><td class="num">–</td><td class="num">–</td></tr>
                {forecast.plans.map((one) => {
                  const took = one.steps.reduce((sum, { took: part }) => ({ indexed: sum.indexed + part.rows_indexed, rewritten: sum.rewritten + part.rows_rewritten }), { indexed: 0, rewritten: 0 });
                  return (
                    <tr key={one.name} class={one === plan ? "is-chosen" : ""}>
                      <th scope="row"><button type="button" class="link" aria-pressed={one === plan} onClick={() => setChosen(one.name)}>{name(one.title)}</button></th>
                      <Numbers summary={one.after} before={forecast.before} />
                      <td class="num">{compactCount(took.indexed)}</td><td class="num">{compactCount(took.rewritten)}</td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
          {drawn && forecast.before.columns && plan?.after.columns && (
            <div class="whatif-pictures">
              <Strips columns={forecast.before.columns} layout={layout} title="Now" themeStamp={themeStamp} />
              <Strips columns={plan.after.columns} layout={layout} title={`After: ${plan.title}`} themeStamp={themeStamp} />
            </div>
          )}
          {forecast.advice.length > 0 && (
            <ul class="whatif-advice">
              {forecast.advice.map((advice) => <li key={advice.rule + advice.evidence}><Icon name={advice.severity === "warning" ? "warn" : "info"} /><span>{name(advice.evidence)} {typeof advice.action === "object" && advice.action !== null && "command" in advice.action && <Copyable value={String(advice.action.command)} label="the command"><code>{name(String(advice.action.command))}</code></Copyable>}</span></li>)}
            </ul>
          )}
          {forecast.warnings.map((warning) => <p class="note" key={warning.rule}><Icon name="info" /> {name(warning.evidence)}</p>)}
          <p class="quiet">{plural(forecast.plans.length, "plan")} over {plural(forecast.before.fragments, "fragment")}, worked out in {duration(shown?.ms ?? 0)} from the manifest alone.</p>
        </>
      )}
    </div>
  );
}

function Numbers({ summary, before }: { summary: LayoutForecast["before"]; before: LayoutForecast["before"] }): JSX.Element {
  const cell = (key: "fragments" | "segments" | "groups" | "frozen", better: "less" | null) => {
    const [value, was] = [summary[key], before[key]];
    const tone = better === null || value === was ? "" : value < was ? " is-better" : " is-worse";
    return <td class={`num${tone}`}>{count(value)}</td>;
  };
  return <>{cell("fragments", "less")}{cell("segments", "less")}{cell("groups", null)}{cell("frozen", "less")}</>;
}
