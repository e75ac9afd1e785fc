// The documents as text.
import type {
  AuditReport, BuildPlan, DiscardPlan, FragmentInfo, GcPlan, GcReport, HistoryDocument, IndexInfo, OrphanList, Plan, Probe, PrunedSegment, PrunePlan,
  PruneReport, ReadError, RefreshReport, RemovalReport, SegmentContents, SegmentInfo, SegmentParts, ShowDocument, TransactionInfo, TrimPlan, TrimReport,
} from "../types.js";
import { count, name, pairs, percent, plural, ranges, size, table } from "./text.js";

/** Lines of `show`. */
export function show(document: ShowDocument): string {
  const { fragments } = document;
  const place = document.branch === null ? `version ${document.version}` : `version ${document.version} on branch ${document.branch}`;
  const parts = [
    `${document.uri}\n${place}`,
    pairs([
      ["rows", `${count(document.rows)}${fragments.deleted ? ` live, ${count(fragments.deleted)} deleted` : ""}`],
      ["fragments", `${count(fragments.count)}, ${size(fragments.bytes)}`],
      ["storage", `Lance ${document.data_storage_version}${document.has_stable_row_ids ? ", stable row ids" : ""}`],
      ["read", `${plural(document.requests.count, "request")}, ${size(document.requests.bytes)}`],
    ]),
    document.indices.length === 0 ? "no indexes" : table(document.indices, [
      { head: "INDEX", cell: (i) => name(i.name) },
      { head: "TYPE", cell: (i) => i.type },
      { head: "COLUMN", cell: (i) => name(i.field_names.join(", ")) },
      { head: "COVERED", cell: (i) => percent(i.indexed_percent, i.coverage_known), right: true },
      { head: "UNINDEXED", cell: (i) => unindexed(i.unindexed_fragments), right: true },
      { head: "SEGMENTS", cell: (i) => count(i.num_segments), right: true },
      { head: "SIZE", cell: (i) => size(i.size_bytes), right: true },
    ]),
    ...document.warnings.map((warning) => `${warning.severity}: ${warning.evidence}${command(warning.action)}`),
  ];
  return parts.join("\n\n");
}

function unindexed(fragments: number[] | null): string {
  if (fragments === null) return "unknown";
  return fragments.length === 0 ? "–" : plural(fragments.length, "fragment");
}

function command(action: ShowDocument["warnings"][number]["action"]): string {
  return action === null ? "" : `\n  ${action.command}`;
}

/** Lines of `fragments`. */
export function fragments(list: FragmentInfo[]): string {
  return table(list, [
    { head: "FRAGMENT", cell: (f) => String(f.id), right: true },
    { head: "ROWS", cell: (f) => count(f.rows), right: true },
    { head: "DELETED", cell: (f) => (f.num_deletions === 0 ? "–" : count(f.num_deletions)), right: true },
    { head: "FILES", cell: (f) => count(f.data_files.length), right: true },
    { head: "SIZE", cell: (f) => size(total(f.data_files.map((file) => file.size))), right: true },
    { head: "COVERED BY", cell: (f) => f.covered_by === null ? "unknown" : Object.entries(f.covered_by).filter(([, uuids]) => uuids.length > 0)
      .map(([index, uuids]) => `${name(index)} ${uuids.map((uuid) => uuid.slice(0, 8)).join("+")}`).join(", ") || "–" },
  ]);
}

function total(sizes: (number | null)[]): number | null {
  return sizes.reduce<number | null>((sum, one) => (sum === null || one === null ? null : sum + one), 0);
}

/** Why a segment, or its parts, cannot be read; `null` when it can. */
export function unreadable({ contents, parts: inside }: SegmentContents): ReadError | null {
  if (isReadError(contents["error"])) return contents["error"];
  return inside !== null && "error" in inside ? inside.error : null;
}

function isReadError(value: unknown): value is ReadError {
  return typeof value === "object" && value !== null && "code" in value && "message" in value;
}

/** Lines of `segments`. `read`: what came of reading what is inside. */
export function segments(indices: Pick<IndexInfo, "name" | "segments">[], read: SegmentContents[] | null = null): string {
  const failed = new Set(read?.filter((segment) => unreadable(segment) !== null).map(({ uuid }) => uuid));
  const rows = indices.flatMap((index) => index.segments.map((segment) => ({ ...segment, index: index.name })));
  if (rows.length === 0) return "no segments";
  return table<SegmentInfo & { index: string }>(rows, [
    { head: "INDEX", cell: (s) => name(s.index) },
    { head: "SEGMENT", cell: (s) => s.uuid },
    { head: "LIVE FRAGMENTS", cell: (s) => ranges(s.effective_fragment_ids) },
    { head: "RETIRED", cell: (s) => (s.retired_fragment_ids?.length ? ranges(s.retired_fragment_ids) : "–") },
    { head: "VERSION", cell: (s) => String(s.dataset_version), right: true },
    { head: "SIZE", cell: (s) => size(s.size_bytes), right: true },
    { head: "STATUS", cell: (s) => (failed.has(s.uuid) ? "unreadable" : s.status_reason ? `${s.status}: ${s.status_reason}` : s.status) },
  ]);
}

/** Lines of what is inside segments, below the table of them. */
export function contents(list: SegmentContents[] | null): string {
  if (list === null) return "\n\nthis build does not read what is inside";
  return list.map((segment) => {
    const { uuid, contents, parts: inside } = segment;
    const failure = unreadable(segment);
    const sentence = failure === null ? "" : `cannot be read: ${failure.message} [${failure.code}]`;
    if (isReadError(contents["error"])) return `\n\n${uuid}\n${sentence}`;
    const summary = pairs(Object.entries(contents).map(([key, value]) => [key, JSON.stringify(value)]));
    const rest = inside === null ? "" : "error" in inside ? `\n${sentence}` : inside.count === 0 ? "" : `\n\n${parts(inside, SHOWN)}`;
    return `\n\n${uuid}\n${summary}${rest}`;
  }).join("");
}

/** Parts of a segment in a list of all segments, lines. */
const SHOWN = 20;

const PART_COLUMNS = [
  "partition", "page", "fragment", "start", "length", "key", "token", "rows", "documents", "min", "max", "nulls", "nans", "bytes", "filter_bytes", "fill",
  "false_positive_estimate",
];

/** Lines of the pages, zones, keys or tokens of a segment. */
export function parts(document: SegmentParts, most = Infinity): string {
  const items = document.items.slice(0, most) as unknown as Record<string, unknown>[];
  const cell = (value: unknown): string => (typeof value === "number" && Number.isInteger(value) ? count(value) : name(typeof value === "string" ? value : JSON.stringify(value)));
  const columns = PART_COLUMNS.filter((key) => key in (items[0] ?? {})).map((key) => ({ head: key.toUpperCase(), cell: (item: Record<string, unknown>) => cell(item[key]), right: typeof items[0]?.[key] === "number" }));
  const all = plural(document.count, document.kind.slice(0, -1));
  if (items.length === 0) return all;
  const said = items.length === document.count ? all : `${count(document.offset)} to ${count(document.offset + items.length - 1)} of ${all}; further ones with --segment, --offset and --limit`;
  return `${table(items, columns)}\n${said}`;
}

/** Lines of `probe`. */
export function probe(document: Probe): string {
  const { rows } = document;
  const named = rows === null ? "" : `, ${plural(rows, "row")}${document.exact ? "" : " to look at"}`;
  const parts = [
    `${document.index} (${document.method}), version ${document.version}: ${document.op}${document.value === null ? "" : ` ${document.value}`}`,
    pairs([
      ["can match", `fragments ${ranges(document.fragments)}${named}`],
      ["cannot", ranges(document.pruned)],
      ["unindexed", ranges(document.unindexed)],
    ]),
    table(document.segments, [
      { head: "SEGMENT", cell: (s) => s.uuid },
      { head: "LIVE FRAGMENTS", cell: (s) => ranges(s.fragments) },
      { head: "PAGES", cell: (s) => (s.pages === null ? "–" : ranges(s.pages)) },
      { head: "ZONES", cell: (s) => (s.zones === null ? "–" : count(s.zones.length)), right: true },
      { head: "ROWS", cell: (s) => (s.rows === null ? "–" : count(s.rows)), right: true },
    ]),
    ...document.omitted.map((segment) => `queries leave segment ${segment.uuid} out (${segment.state}): ${segment.why}`),
  ];
  return parts.join("\n\n");
}

/** Lines of `audit`. */
export function audit(report: AuditReport): string {
  const looked = `${plural(report.fragments.length, "fragment")} of ${count(report.covered_fragments)} covered, ${plural(report.rows, "row")}, ${plural(report.segments, "segment")}`;
  const kinds = Object.entries(report.counts);
  const bound = report.error_bound === null ? "" : `; with 95 % confidence fewer than ${percent(100 * report.error_bound, true)} of the fragments has faults`;
  const verdict = kinds.length === 0 ? `nothing found${bound}` : kinds.map(([code, n]) => `${code} ${count(n)}`).join(", ");
  const parts = [`${report.index} (${report.method}), version ${report.version}: ${looked}\n${verdict}`];
  if (report.findings.length > 0) {
    parts.push(table(report.findings, [
      { head: "FINDING", cell: (f) => f.code },
      { head: "SEGMENT", cell: (f) => f.segment?.slice(0, 8) ?? "–" },
      { head: "WHAT", cell: (f) => f.text },
    ]));
  }
  return [...parts, ...report.notes].join("\n\n");
}

/** Lines of `plan`, and of any job with --dry-run. */
export function plan(document: Plan): string {
  if (document.kind !== "drop_index") return building(document);
  const { index, v_plan, segments } = document;
  return [`${index.name}, planned on version ${v_plan}: drops ${plural(segments.length, "segment")}, ${size(index.size_bytes)}`, fates(segments)].join("\n\n");
}

function fates(segments: Plan["segments"]): string {
  return table(segments, [
    { head: "SEGMENT", cell: (s) => s.uuid },
    { head: "FATE", cell: (s) => s.fate },
    { head: "WHY", cell: (s) => s.why },
  ]);
}

function building(document: BuildPlan): string {
  const { sets, index } = document;
  const head = `${name(index.name)} (${index.method} on ${name(index.column)}), planned on version ${document.v_plan}`;
  const parts = [head, pairs([
    ["live", plural(sets.live.length, "fragment")],
    ["covered", plural(sets.covered.length, "fragment")],
    ["unindexed", `${plural(sets.unindexed.length, "fragment")}${sets.unindexed.length === 0 ? "" : `: ${ranges(sets.unindexed)}`}`],
  ])];
  if (document.tasks.length === 0) parts.push("nothing to do");
  else if (document.runs.length === 0) parts.push("the definition only; a refresh indexes the rows");
  else {
    parts.push(table(document.runs.map((run, i) => ({ ...run, number: i + 1 })), [
      { head: "RUN", cell: (r) => String(r.number), right: true },
      { head: "ROWS", cell: (r) => count(r.rows), right: true },
      { head: "FRAGMENTS", cell: (r) => ranges(r.fragments) },
    ]));
  }
  if (document.segments.length > 0) parts.push(fates(document.segments));
  if (document.absorbed.length > 0) parts.push(document.absorbed.map((a) => `absorbs ${a.uuid}: ${a.why}`).join("\n"));
  const { estimate } = document;
  if (document.runs.length > 0) {
    parts.push(`about ${plural(estimate.requests, "request")}, ${size(estimate.read_bytes)} read, ${size(estimate.write_bytes)} written, ${size(estimate.memory_bytes)} of memory`);
  }
  return [...parts, ...document.warnings.map((w) => `${w.severity}: ${w.evidence}`)].join("\n\n");
}

/** Lines of a job that was run. */
export function report(document: RefreshReport, kind: Plan["kind"]): string {
  const name = document.index_name;
  if (document.transaction === null) return `${name}: ${kind === "drop_index" ? "gone already" : "nothing to do"}, still version ${document.version}`;
  const entries: [string, string][] = [
    ...(kind === "drop_index" ? [] : [["established", `${plural(document.established.length, "fragment")}: ${ranges(document.established)}`] as [string, string]]),
    ["version", `${document.version_before} → ${document.version}`],
    ["transaction", document.transaction],
    ["attempts", count(document.attempts.length)],
    ["took", `${(document.ms / 1000).toFixed(document.ms < 10_000 ? 2 : 0)} s, ${plural(document.requests.count, "request")}, ${size(document.requests.bytes)} read`],
  ];
  const left = document.left_out.map((one) => `left out: fragment ${one.fragment}, ${one.why}`);
  const done = kind === "drop_index" ? `dropped, ${plural(document.segments_removed, "segment")}`
    : kind === "create_index" && document.fragments_indexed === 0 ? "created, nothing indexed"
    : `${kind === "create_index" ? "created, " : ""}${plural(document.fragments_indexed, "fragment")} indexed`;
  return [`${name}: ${done}`, pairs(entries), ...(left.length > 0 ? [left.join("\n")] : [])].join("\n\n");
}

/** Lines of `history`. */
export function history(document: HistoryDocument): string {
  if (document.index_version === null) return `version ${document.version}: no fragment reuse history`;
  const known = document.supported ? "" : ", with records this build does not know: nothing is concluded from it";
  const ids = (list: { id: number }[]): string => (list.length === 0 ? "nothing" : ranges(list.map((one) => one.id)));
  const parts = [`version ${document.version}: a history of version ${document.index_version}${known}`];
  if (document.transitions.length > 0) {
    parts.push(table(document.transitions, [
      { head: "AT", cell: (t) => String(t.position), right: true },
      { head: "KIND", cell: (t) => t.kind.replace("_", " ") },
      { head: "FROM", cell: (t) => ids(t.sources) },
      { head: "TO", cell: (t) => ids(t.destinations) },
      { head: "TRIM", cell: (t) => (t.kept ? "keeps" : "removes") },
    ]));
  }
  parts.push(...document.transitions.filter((t) => t.why.length > 0).map((t) => `${t.position} stays:\n${t.why.map((why) => `  ${why}`).join("\n")}`));
  if (document.segments.length > 0) {
    parts.push(table(document.segments, [
      { head: "INDEX", cell: (s) => name(s.index) },
      { head: "SEGMENT", cell: (s) => s.uuid },
      { head: "BUILT FROM", cell: (s) => ranges(s.stored) },
      { head: "COVERS", cell: (s) => (s.derived.length === 0 ? "–" : ranges(s.derived)) },
      { head: "STATE", cell: (s) => s.state.replace("_", " ") },
      { head: "WHY", cell: (s) => (s.kept ? s.reason ?? s.why : `a prune removes it: ${s.why}`) },
    ]));
  }
  return parts.join("\n\n");
}

function pruned(segments: PrunedSegment[]): string[] {
  return segments.map((s) => `${s.index} ${s.uuid}: ${s.why}`);
}

/** Lines of `trim --dry-run`. */
export function trimPlan(plan: TrimPlan): string {
  const outcome = plan.index_version === null ? "there is no fragment reuse history"
    : plan.outcome === "nothing" ? "every record is needed" : plan.outcome === "delete" ? "no record is needed: the history goes" : "some records go";
  const records = plan.records.map((r) => `${r.moves.join("; ")}: ${r.kept ? r.why.join("; ") : "removed"}`);
  return [`planned on version ${plan.v_plan}: ${outcome}`, ...pruned(plan.prune), ...records].join("\n");
}

/** Lines of `trim`. */
export function trimReport(report: TrimReport): string {
  if (report.transactions.length === 0) return `nothing to do, still version ${report.version}`;
  const records = report.records_before === null ? "" : `, ${report.records_before} → ${report.records_after ?? 0} records`;
  return [`version ${report.version_before} → ${report.version}${records}`, ...pruned(report.segments_removed)].join("\n");
}

/** Lines of `prune --dry-run`. */
export function prunePlan(plan: PrunePlan): string {
  return [`planned on version ${plan.v_plan}: ${plan.segments.length === 0 ? "no segment is superseded" : `drops ${plural(plan.segments.length, "segment")}`}`, ...pruned(plan.segments)].join("\n");
}

/** Lines of `prune`. */
export function pruneReport(report: PruneReport): string {
  if (report.transaction === null) return `nothing to do, still version ${report.version}`;
  return [`version ${report.version_before} → ${report.version}`, ...pruned(report.segments_removed)].join("\n");
}

/** Lines of `gc`. */
export function gcPlan(plan: GcPlan): string {
  const parts = [`version ${plan.v_plan}: ${plural(plan.row_maps.length, "row map")}, ${plural(plan.versions_read, "manifest")} read`];
  if (plan.disabled !== null) parts.push(`nothing can be removed: ${plan.disabled}`);
  if (plan.row_maps.length > 0) {
    parts.push(table(plan.row_maps, [
      { head: "ROW MAP", cell: (m) => m.map_id },
      { head: "STATE", cell: (m) => m.state.replace("_", " ") },
      { head: "AGE", cell: (m) => (m.age === null ? "–" : `${Math.floor(m.age / 86_400_000)} d`), right: true },
      { head: "SIZE", cell: (m) => size(m.bytes), right: true },
      { head: "NAMED BY", cell: (m) => (m.referenced_by.length === 0 ? "–" : m.referenced_by.join(", ")) },
    ]));
  }
  return parts.join("\n\n");
}

/** Lines of `gc --delete`. */
export function gcReport(report: GcReport): string {
  if (report.disabled !== null) return `nothing was removed: ${report.disabled}`;
  return [`${plural(report.removed.length, "row map")} removed, ${size(report.bytes_removed)}; ${count(report.kept)} kept`, ...report.removed].join("\n");
}

/** Lines of `transaction`. */
export function transaction(uuid: string, found: TransactionInfo | null): string {
  if (found === null) return `${uuid}: no readable version carries this transaction`;
  const version = found.version === null ? "not committed, as far as can be read" : `version ${found.version}`;
  return pairs([["transaction", found.uuid], ["operation", found.operation], ["read version", String(found.read_version)], ["became", version]]);
}

/** Lines of a plan to discard. */
export function discard(plan: DiscardPlan): string {
  const rows = table(plan.segments, [
    { head: "SEGMENT", cell: (s) => s.uuid },
    { head: "FILES", cell: (s) => count(s.files.length), right: true },
    { head: "SIZE", cell: (s) => size(s.bytes), right: true },
  ]);
  return `nothing of it was committed: ${plan.why}\n\n${rows}`;
}

/** Lines of `orphans`. */
export function orphans(list: OrphanList): string {
  if (list.orphans.length === 0) return `nothing: all that is there is named by one of ${plural(list.manifests, "version")}`;
  const rows = table(list.orphans, [
    { head: "WHAT", cell: (o) => o.what.replace("_", " ") },
    { head: "PATH", cell: (o) => o.path },
    { head: "FILES", cell: (o) => count(o.files), right: true },
    { head: "SIZE", cell: (o) => size(o.bytes), right: true },
    { head: "AGE", cell: (o) => age(o.age_ms), right: true },
    { head: "REMOVABLE", cell: (o) => (o.removable ? "yes" : `no: ${o.why}`) },
  ]);
  return `${rows}\n\n${size(list.removable_bytes)} may be removed: orphans --remove does it`;
}

function age(ms: number | null): string {
  if (ms === null) return "unknown";
  const hours = Math.floor(ms / 3_600_000);
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} d`;
}

/** Lines of what was removed. */
export function removal(report: RemovalReport): string {
  const left = report.left.map((one) => `left: ${one.path}, ${one.why}`);
  return [`removed ${plural(report.removed.length, "object")}, ${size(report.bytes)}`, ...left].join("\n");
}

/** Lines of `sql`. */
export function rows({ columns, rows: list }: { columns: string[]; rows: unknown[][] }): string {
  if (list.length === 0) return "no rows";
  return table(list, columns.map((head, i) => ({
    head,
    cell: (row: unknown[]) => (row[i] === null || row[i] === undefined ? "–" : String(row[i])),
    right: list.every((row) => row[i] === null || typeof row[i] === "number"),
  })));
}
