// What can be chosen for a compaction. A field that is left empty says what the table is configured with, else Lance's default.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import type { CompactionOptions, ResolvedCompaction } from "../engine/documents.js";
import { count } from "../lib/format.js";
import { typedIds, typedNumber } from "./choice.js";
import type { Choice } from "./choice.js";
import { TypedField } from "./fields.js";

type Compacting = Extract<Choice, { kind: "compact" }>;
type Key = keyof CompactionOptions;

const SOURCES = { argument: "as chosen here", config: "as the table is configured", default: "Lance’s default" };
const WHOLE = "A whole number above 0, or nothing.";

/** Limits of one run; without any it does all there is. */
const LIMITS: readonly [Key & `max_source_${string}`, string][] = [["max_source_fragments", "Most fragments"], ["max_source_rows", "Most rows"], ["max_source_bytes", "Most bytes"]];

export function CompactChoices({ choice, resolved, onChoice }: { choice: Compacting; resolved: ResolvedCompaction | null; onChoice: (choice: Choice) => void }): JSX.Element {
  const { options } = choice;
  const faults = useRef(new Set<Key>());
  const set = <K extends Key>(key: K, value: CompactionOptions[K] | null | undefined) => {
    const { [key]: _, ...others } = options;
    if (value === null) faults.current.add(key);
    else faults.current.delete(key);
    onChoice({ ...choice, options: value === null || value === undefined ? others : { ...others, [key]: value }, fault: faults.current.size > 0 });
  };
  const from = (key: string) => SOURCES[resolved?.from[key] ?? "default"];
  const materialize = options.materialize_deletions ?? resolved?.materialize_deletions ?? true;
  const defer = options.defer_index_remap ?? resolved?.defer_index_remap ?? false;
  // What a field shows while it is empty: a value chosen here would repeat what stands in it.
  const placeholder = (key: Key & keyof ResolvedCompaction, fallback: string, format: (n: number) => string = count) => {
    const value = resolved?.[key];
    return options[key] === undefined && typeof value === "number" ? format(value) : fallback;
  };
  return (
    <>
      <TypedField label="Rows per fragment" start={options.target_rows_per_fragment === undefined ? "" : String(options.target_rows_per_fragment)} placeholder={placeholder("target_rows_per_fragment", count(1_048_576))}
        hint={`A fragment with fewer is worth joining: ${options.target_rows_per_fragment === undefined ? `${placeholder("target_rows_per_fragment", count(1_048_576))}, ${from("target_rows_per_fragment")}` : "as chosen here"}.`}
        wrong={WHOLE} read={(text) => typedNumber(text, 1)} onValue={(value) => set("target_rows_per_fragment", value)} />
      <label class="check">
        <input type="checkbox" checked={materialize} onChange={(event) => set("materialize_deletions", event.currentTarget.checked)} />
        <span>Drop deleted rows<small>Rewrites a fragment even alone when too much of it is deleted ({from("materialize_deletions")}).</small></span>
      </label>
      {materialize && (
        <TypedField label="Deleted above, in percent" start={options.materialize_deletions_threshold === undefined ? "" : String(options.materialize_deletions_threshold * 100)} placeholder={placeholder("materialize_deletions_threshold", "10", (share) => String(Number((share * 100).toPrecision(6))))}
          wrong="A number from 0 to 100, or nothing." read={typedShare} onValue={(value) => set("materialize_deletions_threshold", value)} />
      )}
      <label class="check">
        <input type="checkbox" checked={defer} onChange={(event) => set("defer_index_remap", event.currentTarget.checked)} />
        <span>Leave the indexes alone<small>Records in the fragment reuse history where rows went, instead of writing segments again ({from("defer_index_remap")}).</small></span>
      </label>
      <details class="more-choices">
        <summary>Limits of this run</summary>
        {LIMITS.map(([key, label]) => (
          <TypedField key={key} label={label} start={options[key] === undefined ? "" : String(options[key])} placeholder={placeholder(key, "no limit")} wrong={WHOLE} read={(text) => typedNumber(text, 1)} onValue={(value) => set(key, value)} />
        ))}
        <TypedField label="Fragments to leave out" start={(options.excluded_fragment_ids ?? []).join(", ")} placeholder="3, 5-8" hint="They stay, and separate their neighbours." wrong="Fragment ids, such as 3, 5-8."
          read={(text) => typedIds(text)} onValue={(value) => set("excluded_fragment_ids", value)} />
      </details>
    </>
  );
}

/** "12.5" percent as a share. */
function typedShare(text: string): number | null | undefined {
  const trimmed = text.trim().replace(",", ".");
  if (trimmed === "") return undefined;
  const value = /^\d{1,3}(\.\d{1,6})?$/.test(trimmed) ? Number(trimmed) : Number.NaN;
  return value <= 100 ? Number((value / 100).toPrecision(7)) : null;
}
