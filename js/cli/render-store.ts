// A store report as text.
import type { StoreCheck, StoreReport } from "../conformance.js";
import { plural, size } from "./text.js";

const MARKS: Record<StoreCheck["status"], string> = { ok: "ok     ", failed: "FAILED ", warning: "warning", skipped: "skipped" };

/** One line per check, as it ends. */
export function storeCheckLine(check: StoreCheck): string {
  return `${MARKS[check.status]}  ${check.name.padEnd(16)}  ${check.seen}\n`;
}

/** The report; without its checks where they were printed already. */
export function storeReport(report: StoreReport, shown: boolean): string {
  const { requests } = report;
  const parts = [
    `${report.verdict}.`,
    `create if absent: ${report.create_if_absent.spelling}; a loser is told by ${report.create_if_absent.loser}\n`
      + `${plural(requests.count, "request")}, ${size(requests.bytes)} read, ${size(requests.bytes_written)} written, ${(report.ms / 1000).toFixed(1)} s`,
    ...report.remedies.map((remedy) => `${remedy.mends}; ${remedy.where}:\n${remedy.paste.split("\n").map((line) => `  ${line}`).join("\n")}`),
    ...(report.left.length === 0 ? [] : [`left on the store: ${report.left.join(", ")}`]),
  ];
  return `${shown ? "\n" : report.checks.map(storeCheckLine).join("") + "\n"}${parts.join("\n\n")}`;
}
