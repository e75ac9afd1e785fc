// The health lines: a rule, its evidence in numbers, and one action. What a person should know within two seconds.

import type { Advice, ErrorDocument, IndexInfo, ShowDocument } from "../engine/documents.js";
import type { Groups } from "../map/groups.js";
import { count, percent, plural } from "./format.js";

export interface HealthLine {
  rule: string;
  severity: "good" | "info" | "warning";
  /** Index the line is about; null for the table. */
  index: string | null;
  /** Said first and in bold: a name from the table or a plain word. */
  subject: string;
  text: string;
  action: { kind: "refresh" | "merge" | "show" | "compact"; label: string } | null;
}

/** From this many segments on, opening all of them for every query is worth a line. */
const MANY_SEGMENTS = 8;

/** Methods that this release can build. */
const REFRESHABLE = new Set(["btree", "zonemap", "bitmap", "bloomfilter", "ngram", "labellist", "inverted"]);

export function canRefresh(index: IndexInfo): boolean {
  return REFRESHABLE.has(index.type.toLowerCase());
}

export function healthLines(table: Pick<ShowDocument, "rows" | "indices" | "warnings">): HealthLine[] {
  const lines: HealthLine[] = [];
  // Nobody knows what indexes cover under a history this release cannot interpret; one line says so for all of them.
  const unread = (table.warnings ?? []).some((advice) => advice.rule === "history_unsupported");
  for (const index of table.indices) {
    if (unread) break;
    const missing = index.unindexed_fragments?.length ?? 0;
    if (!index.coverage_known) {
      lines.push({
        rule: "coverage-unknown", severity: "warning", index: index.name, subject: index.name,
        text: `has a segment that does not record what it covers: at least ${percent(index.indexed_percent)} of the rows are indexed, the rest is unknown`,
        action: canRefresh(index) ? { kind: "refresh", label: "Refresh…" } : { kind: "show", label: "Show" },
      });
    } else if (missing > 0) {
      const deferred = index.covered_live_fragments?.length === 0;
      const effect = `${plural(missing, "fragment")} ${missing === 1 ? "is" : "are"} scanned by every query`;
      lines.push({
        rule: deferred ? "deferred" : "uncovered", severity: "warning", index: index.name, subject: index.name,
        text: deferred ? `is defined but covers nothing yet: ${effect}` : `covers ${percent(index.indexed_percent)} of the rows: ${effect}`,
        action: canRefresh(index) ? { kind: "refresh", label: "Refresh…" } : { kind: "show", label: "Show" },
      });
    }
    const dead = index.segments.filter((s) => s.derived_coverage === undefined && s.effective_fragment_ids !== null && s.effective_fragment_ids.length === 0 && (s.fragment_ids?.length ?? 0) > 0).length;
    if (dead > 0) {
      lines.push({
        rule: "dead-segments", severity: "info", index: index.name, subject: index.name,
        text: `keeps ${plural(dead, "segment")} whose fragments are all gone: the next refresh removes ${dead === 1 ? "it" : "them"}`,
        action: { kind: "show", label: "Show" },
      });
    }
    if (index.num_segments >= MANY_SEGMENTS) {
      lines.push({
        rule: "many-segments", severity: "info", index: index.name, subject: index.name,
        text: `has ${count(index.num_segments)} segments: a query opens all of them`,
        action: canRefresh(index) ? { kind: "merge", label: "Merge…" } : { kind: "show", label: "Show" },
      });
    }
  }
  for (const advice of table.warnings ?? []) if (!saidAlready(advice, lines)) lines.push(fromAdvice(advice));
  if (lines.every((line) => line.severity !== "warning")) {
    const n = table.indices.length;
    if (n > 0 && table.rows !== 0) {
      lines.unshift({
        rule: "healthy", severity: "good", index: null, subject: n === 1 ? "The index covers" : n === 2 ? "Both indexes cover" : `All ${count(n)} indexes cover`, text: "every row of this version",
        action: null,
      });
    } else if (n === 0) {
      lines.unshift({ rule: "no-index", severity: "info", index: null, subject: "No indexes:", text: "every query scans the whole table", action: null });
    } else {
      lines.unshift({ rule: "empty", severity: "info", index: null, subject: "No rows yet:", text: "there is nothing to index", action: null });
    }
  }
  return lines;
}

/**
 * The line about the layout: what a compaction would join, and what it cannot. There is always one, so that its coming moves nothing;
 * `null` while the planner has not answered.
 */
export function layoutLine(groups: Groups | null, refused: ErrorDocument | null): HealthLine | null {
  const line = (severity: HealthLine["severity"], subject: string, text: string, compact = false): HealthLine => ({
    rule: "layout", severity, index: null, subject, text, action: compact ? { kind: "compact", label: "Compact…" } : null,
  });
  if (refused) return line("info", "Layout:", `a compaction cannot be planned: ${refused.message.split("; ")[0] ?? ""}`);
  if (!groups) return null;
  let [joined, inGroups, frozen] = [0, 0, 0];
  for (const group of groups.list) {
    if (group.frozen) frozen += 1;
    else [joined, inGroups] = [joined + 1, inGroups + group.to - group.from];
  }
  if (joined > 0) return line("info", "Layout:", `a compaction would rewrite ${plural(inGroups, "fragment")} in ${plural(joined, "group")}${frozen > 0 ? ` and leave ${count(frozen)} frozen` : ""}`, true);
  if (frozen > 0) return line("info", "Layout:", `${plural(frozen, "small fragment is", "small fragments are")} frozen: other segments cover the neighbours`);
  return line("good", "Layout:", "there is nothing a compaction would rewrite");
}

/** The engine's own advice about coverage and segments repeats what the lines above say with an action. */
function saidAlready(advice: Advice, lines: readonly HealthLine[]): boolean {
  return /cover|unindexed|incomplete|segments|deferred|unknown/i.test(advice.rule) && lines.some((line) => line.index !== null && advice.evidence.includes(line.index));
}

function fromAdvice(advice: Advice): HealthLine {
  return {
    rule: advice.rule, severity: advice.severity === "info" ? "info" : "warning", index: null, subject: "", text: advice.evidence.replace(/^[A-Z_]+: /, ""), action: null,
  };
}
