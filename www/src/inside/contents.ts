// What a segment's contents say, sorted into facts, bars and problems. Pure: every method names its own keys, and none is lost.

import type { ReadError } from "whetstone";

import { bytes, count } from "../lib/format.js";

export interface Fact {
  label: string;
  value: string;
}

export interface Bars {
  title: string;
  bars: { label: string; value: number; unit: string }[];
}

export interface Sorted {
  facts: Fact[];
  bars: Bars[];
  problems: string[];
  remarks: string[];
}

/** Keys that are shown elsewhere or say nothing by themselves. */
const LEFT_OUT = new Set(["method", "problems", "remarks", "error", "index_version", "data_files", "fragments", "partitions", "deleted_fragments"]);
const TITLES: Record<string, string> = { largest: "Most rows", top_tokens: "Most documents" };

export function sortContents(contents: Record<string, unknown>): Sorted {
  const sorted: Sorted = { facts: [], bars: [], problems: texts(contents["problems"]), remarks: texts(contents["remarks"]) };
  const error = contents["error"] as ReadError | undefined;
  if (error) sorted.problems.unshift(error.message);
  for (const [key, value] of Object.entries(contents)) {
    if (LEFT_OUT.has(key)) continue;
    if (Array.isArray(value)) {
      const bars = value.flatMap(bar);
      if (bars.length > 0) sorted.bars.push({ title: TITLES[key] ?? words(key), bars });
    } else if (value !== null && typeof value === "object") {
      for (const [inner, deep] of Object.entries(value)) sorted.facts.push({ label: words(inner), value: said(inner, deep) });
    } else sorted.facts.push({ label: words(key), value: said(key, value) });
  }
  return sorted;
}

/** `{ token: "run", documents: 15 }`: the text is the label, the number its length. */
function bar(item: unknown): Bars["bars"] {
  if (item === null || typeof item !== "object") return [];
  const entries = Object.entries(item);
  const number = entries.find(([, value]) => typeof value === "number");
  const label = entries.find(([key]) => key !== number?.[0]);
  return number && label ? [{ label: label[1] === null ? "null" : String(label[1]), value: number[1] as number, unit: words(number[0]) }] : [];
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function words(key: string): string {
  return key.replaceAll("_", " ");
}

function said(key: string, value: unknown): string {
  if (value === null || value === undefined) return "unknown";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return value === "" ? "“”" : String(value);
  if (/bytes$/.test(key)) return bytes(value);
  if (Number.isInteger(value)) return count(value);
  return Math.abs(value) >= 0.001 ? value.toPrecision(4) : value.toExponential(2);
}
