// Inside an index: what its segments hold, whether they tell the truth, and what one condition would have to read.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { AuditReport, IndexInfo, Probe, SegmentContents } from "../engine/documents.js";
import { count, duration, name, percent, plural, ranges, sharePercent, shortUuid } from "../lib/format.js";
import type { Layout } from "../map/model.js";
import { ErrorPanel } from "../parts/ErrorPanel.js";
import { Bone, Copyable, Icon, Swatch } from "../parts/basics.js";
import type { Session } from "../session.js";
import { Parts } from "./Parts.js";
import { sortContents } from "./contents.js";
import { useAsked } from "./useAsked.js";
import type { Asked } from "./useAsked.js";

const VIEWS = ["contents", "audit", "probe"] as const;
type View = (typeof VIEWS)[number];

/** `uuid`: only this segment's contents. */
export function Inside({ session, layout, index, uuid, target }: { session: Session; layout: Layout; index: IndexInfo; uuid: string | null; target: string | null }): JSX.Element {
  const [view, setView] = useState<View | null>(null);
  return (
    <div class="inside">
      <div class="inside-head">
        <h4>Look inside</h4>
        <div class="segmented" role="group" aria-label="Look inside the index">
          {VIEWS.map((one) => <button key={one} type="button" aria-pressed={view === one} onClick={() => setView(view === one ? null : one)}>{one}</button>)}
        </div>
      </div>
      {view === "contents" && <Contents session={session} layout={layout} index={index} uuid={uuid} target={target} />}
      {view === "audit" && <Audit session={session} index={index} target={target} />}
      {view === "probe" && <Probing session={session} layout={layout} index={index} target={target} />}
    </div>
  );
}

function subjectOf(session: Session, index: IndexInfo): string {
  return `${session.table?.show.version ?? ""}/${index.name}`;
}

function Answer<A>({ asked, target, retry, bones, children }: { asked: Asked<A>; target: string | null; retry: () => void; bones: number; children: (answer: A, ms: number) => ComponentChildren }): JSX.Element {
  if (asked.is === "failed") return <ErrorPanel failure={asked.error} target={target} onRetry={retry} />;
  if (asked.is === "answered") return <>{children(asked.answer, asked.ms)}</>;
  return <div aria-busy="true">{Array.from({ length: bones }, (_, i) => <p key={i}><Bone width={i % 2 ? "34ch" : "52ch"} /></p>)}</div>;
}

function Contents({ session, layout, index, uuid, target }: { session: Session; layout: Layout; index: IndexInfo; uuid: string | null; target: string | null }): JSX.Element {
  const subject = subjectOf(session, index);
  const { asked, ask } = useAsked<SegmentContents[]>(subject);
  const look = () => ask((signal) => session.inspect(index.name, signal));
  useEffect(look, [subject]);
  return (
    <Answer asked={asked} target={target} retry={look} bones={3}>
      {(segments) => {
        const shown = uuid === null ? segments : segments.filter((segment) => segment.uuid.toLowerCase() === uuid);
        return (
          <div class="contents">
            {shown.length === 0 && <p class="quiet">{index.num_segments === 0 || uuid === null ? "The index has no segments yet." : "This segment is not among those that can be opened."}</p>}
            {shown.map((segment) => <OneSegment key={segment.uuid} session={session} index={index.name} target={target} segment={segment} layout={layout} titled={shown.length > 1} />)}
          </div>
        );
      }}
    </Answer>
  );
}

function OneSegment({ session, index, target, segment, layout, titled }: { session: Session; index: string; target: string | null; segment: SegmentContents; layout: Layout; titled: boolean }): JSX.Element {
  const { facts, bars, problems, remarks } = sortContents(segment.contents);
  const place = layout.byUuid.get(segment.uuid.toLowerCase());
  const colour = place ? layout.lanes[place.lane]?.segments[place.segment]?.colour ?? 0 : 0;
  return (
    <section class="contents-segment">
      {titled && <h5><Swatch slot={colour} /> Segment {shortUuid(segment.uuid)}</h5>}
      {problems.map((problem) => <p class="note" key={problem}><Icon name="warn" /> {name(problem)}</p>)}
      <dl class="facts-list">{facts.map((fact) => <div key={fact.label}><dt>{fact.label}</dt><dd>{name(fact.value)}</dd></div>)}</dl>
      {bars.map(({ title, bars: list }) => {
        const most = Math.max(1, ...list.map((bar) => bar.value));
        return (
          <figure class="contents-bars" key={title}>
            <figcaption>{title}</figcaption>
            <ul>{list.map((bar, i) => <li key={i}><span class="bar-label" title={bar.label}>{bar.label === "" ? "“”" : name(bar.label)}</span><span class="bar"><span style={{ width: `${(bar.value / most) * 100}%` }} /></span><span class="num">{count(bar.value)}<span class="sr-only"> {bar.unit}</span></span></li>)}</ul>
          </figure>
        );
      })}
      {segment.parts && ("error" in segment.parts
        ? <p class="note"><Icon name="warn" /> {name(segment.parts.error.message)}</p>
        : <Parts session={session} index={index} uuid={segment.uuid} first={segment.parts} target={target} />)}
      {remarks.map((remark) => <p class="quiet" key={remark}>{name(remark)}</p>)}
    </section>
  );
}

/** From this many covered fragments on, a sample is offered first. */
const MANY_FRAGMENTS = 256;

function Audit({ session, index, target }: { session: Session; index: IndexInfo; target: string | null }): JSX.Element {
  const subject = subjectOf(session, index);
  const { asked, ask, stop } = useAsked<AuditReport>(subject);
  const [looked, setLooked] = useState<{ rows: number; total: number } | null>(null);
  const covered = index.covered_live_fragments?.length ?? null;
  const begin = (sample: number | null) => {
    setLooked(null);
    ask((signal) => session.audit(index.name, sample, signal, (rows, total) => setLooked({ rows, total })));
  };
  if (asked.is === "not asked") {
    return (
      <div class="ask">
        <p class="quiet">Reads the column of every covered fragment and the segments themselves, and reports each disagreement. Nothing is written.</p>
        <div class="button-row">
          <button type="button" class="button small" onClick={() => begin(null)}>Audit {covered === null ? "all fragments" : plural(covered, "fragment")}</button>
          {covered !== null && covered > MANY_FRAGMENTS && <button type="button" class="button small" onClick={() => begin(MANY_FRAGMENTS)}>Audit a sample of {count(MANY_FRAGMENTS)}</button>}
        </div>
      </div>
    );
  }
  if (asked.is === "asking") {
    return (
      <div class="ask">
        <div class="run-line"><b>Auditing</b><span>{looked ? `${count(looked.rows)} of ${count(looked.total)} rows` : "opening the segments"}</span></div>
        <progress value={looked && looked.total > 0 ? looked.rows / looked.total : 0} max={1} aria-label="Rows looked at" />
        <div class="button-row"><button type="button" class="button small" onClick={stop}>Cancel</button></div>
      </div>
    );
  }
  return (
    <Answer asked={asked} target={target} retry={() => begin(null)} bones={2}>
      {(report, ms) => <AuditView report={report} ms={ms} />}
    </Answer>
  );
}

function AuditView({ report, ms }: { report: AuditReport; ms: number }): JSX.Element {
  const kinds = Object.entries(report.counts).filter(([, n]) => n > 0);
  const clean = kinds.length === 0 && report.findings.length === 0;
  const found = kinds.reduce((sum, [, n]) => sum + n, 0);
  return (
    <div class="audit" data-clean={clean}>
      <p class="report-head">
        <Icon name={clean ? "check" : "warn"} />
        <span>{clean ? <>The index tells the truth about {report.exact ? "all" : "the"} <b>{plural(report.rows, "row")}</b> looked at.</> : <><b>{plural(found, "disagreement")}</b> between the index and its column: queries through it can be wrong.</>}</span>
      </p>
      {!clean && (
        <table class="runs">
          <thead><tr><th scope="col">what</th><th scope="col" class="num">count</th></tr></thead>
          <tbody>{kinds.map(([kind, n]) => <tr key={kind}><td>{kind.replaceAll("_", " ")}</td><td class="num">{count(n)}</td></tr>)}</tbody>
        </table>
      )}
      {report.findings.length > 0 && (
        <ul class="findings">
          {report.findings.map((finding, i) => <li key={i}>{Object.entries(finding).filter(([, value]) => value !== null && value !== undefined).map(([key, value]) => <span key={key}><small>{key.replaceAll("_", " ")}</small> {name(typeof value === "object" ? JSON.stringify(value) : String(value))}</span>)}</li>)}
        </ul>
      )}
      {report.notes.map((note) => <p class="quiet" key={note}>{name(note)}</p>)}
      <p class="quiet">{plural(report.segments, "segment")}, {count(report.fragments.length)} of {plural(report.covered_fragments, "covered fragment")}, in {duration(ms)}.{report.error_bound !== null && ` With 95 % confidence fewer than ${percent(Math.ceil(report.error_bound * 10_000) / 100)} of the fragments have faults.`}</p>
    </div>
  );
}

const OPERATORS: Record<string, string[]> = {
  btree: ["=", "<", "<=", ">", ">=", "prefix", "is-null"], bitmap: ["=", "<", "<=", ">", ">=", "is-null"], zonemap: ["=", "<", "<=", ">", ">=", "is-null"],
  bloomfilter: ["=", "is-null"], labellist: ["has"], ngram: ["contains"], inverted: ["match", "phrase"],
};

function Probing({ session, layout, index, target }: { session: Session; layout: Layout; index: IndexInfo; target: string | null }): JSX.Element {
  const { asked, ask } = useAsked<Probe>(subjectOf(session, index));
  const operators = OPERATORS[index.type.toLowerCase()] ?? ["="];
  const [op, setOp] = useState(operators[0]!);
  const [value, setValue] = useState("");
  const run = () => ask((signal) => session.probe(index.name, op, op === "is-null" ? null : value, signal));
  return (
    <div class="probe">
      <form class="probe-form" onSubmit={(event) => { event.preventDefault(); run(); }}>
        <span class="probe-column">{name(index.field_names.join(", "))}</span>
        <select value={op} aria-label="Operator" onChange={(event) => setOp(event.currentTarget.value)}>{operators.map((one) => <option key={one} value={one}>{one}</option>)}</select>
        {op !== "is-null" && <input type="text" value={value} aria-label="Value" placeholder="value" autocomplete="off" spellcheck={false} onInput={(event) => setValue(event.currentTarget.value)} />}
        <button type="submit" class="button small">Ask</button>
      </form>
      {asked.is !== "not asked" && (
        <Answer asked={asked} target={target} retry={run} bones={2}>
          {(probe, ms) => {
            const all = layout.columns.ids.length;
            const read = probe.fragments.length + probe.unindexed.length;
            const rows = probe.segments.flatMap((segment) => segment.zones ?? []).reduce((sum, zone) => sum + zone.length, 0);
            return (
              <div class="probe-answer">
                <p>A query reads <b>{count(read)}</b> of {plural(all, "fragment")}{all > 0 && ` (${percent(sharePercent(read, all))})`}{probe.unindexed.length > 0 && <>; {count(probe.unindexed.length)} of them only because no segment covers them</>}.</p>
                <dl class="facts-list">
                  <div><dt>can match</dt><dd>{ranges(probe.fragments, 8)}</dd></div>
                  <div><dt>cannot match</dt><dd>{ranges(probe.pruned, 8)}</dd></div>
                  <div><dt>not indexed</dt><dd>{ranges(probe.unindexed, 8)}</dd></div>
                  <div><dt>{probe.exact ? "rows that match" : "rows to look at"}</dt><dd>{probe.rows !== null ? count(probe.rows) : rows > 0 ? count(rows) : "unknown"}</dd></div>
                  {probe.segments.some((segment) => segment.pages !== null) && <div><dt>index pages read</dt><dd>{count(probe.segments.reduce((sum, segment) => sum + (segment.pages?.length ?? 0), 0))}</dd></div>}
                  <div><dt>time</dt><dd>{duration(ms)}</dd></div>
                </dl>
                {probe.first_rows.length > 0 && <p class="quiet">First {probe.row_domain.replaceAll("_", " ")}s: <Copyable value={probe.first_rows.join(" ")} label="the rows">{probe.first_rows.slice(0, 6).join(", ")}{probe.first_rows.length > 6 && " …"}</Copyable></p>}
              </div>
            );
          }}
        </Answer>
      )}
    </div>
  );
}
