// Small pieces that every part of the page uses.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { SEGMENT_COLOURS, SEGMENT_EDGES, SLOTS } from "../map/palette.js";

const PATHS = {
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9Zm3.3 7.8L14 14",
  gear: "M8 5.6a2.4 2.4 0 1 1 0 4.8 2.4 2.4 0 0 1 0-4.8ZM8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M3.4 12.6l1.4-1.4M11.2 4.8l1.4-1.4",
  contrast: "M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8Z",
  copy: "M5.5 5.5h8v8h-8zM2.5 10.5v-8h8",
  check: "M2.5 8.5 6 12l7.5-8",
  close: "M3 3l10 10M13 3 3 13",
  warn: "M8 2 14.5 13.5h-13ZM8 6.2v3.6M8 11.6v.4",
  info: "M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8ZM8 7.2v4M8 4.8v.4",
  chevron: "M4 6l4 4 4-4",
  play: "M4.5 2.8v10.4L13 8Z",
  pause: "M5 3v10M11 3v10",
  reload: "M13 8a5 5 0 1 1-1.6-3.7M13 1.8v3h-3",
  minus: "M3 8h10",
  plus: "M3 8h10M8 3v10",
  changes: "M3 5h6M6 2v6M3 12.5h6M11.5 3.5v9M9.8 10.8l1.7 1.7 1.7-1.7",
} as const;

export function Icon({ name, filled }: { name: keyof typeof PATHS; filled?: boolean }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} fill={filled ? "currentColor" : "none"} stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" />
      {name === "contrast" && <path d="M8 1.8a6.2 6.2 0 0 1 0 12.4Z" fill="currentColor" />}
    </svg>
  );
}

/** A value that a click copies. The text itself stays selectable. */
export function Copyable({ value, children, label }: { value: string; children?: ComponentChildren; label: string }): JSX.Element {
  const [done, setDone] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    if (!(await copyText(value))) return;
    setDone(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setDone(false), 1400);
  };
  return (
    <span class="copyable">
      <span class="copyable-text">{children ?? value}</span>
      <button type="button" class="icon-button small" onClick={copy} aria-label={`Copy ${label}`} title={`Copy ${label}`}>
        <Icon name={done ? "check" : "copy"} />
      </button>
      <span class="sr-only" role="status">{done ? "Copied" : ""}</span>
    </span>
  );
}

async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages without a secure origin have no clipboard API; a selection still works.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "sr-only";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** A segment's colour as a small square; dotted when its coverage is unknown. */
export function Swatch({ slot, unknown }: { slot: number; unknown?: boolean }): JSX.Element {
  const style = unknown ? undefined : { background: SEGMENT_COLOURS[slot % SLOTS], borderColor: SEGMENT_EDGES[slot % SLOTS] };
  return <span class={`swatch${unknown ? " swatch-unknown" : ""}`} style={style} aria-hidden="true" />;
}

export function Bone({ width }: { width: string }): JSX.Element {
  return <span class="bone" style={{ width }} aria-hidden="true" />;
}

/** Attributes of a button that changes the table: there is only the latest version to change. */
export function latestOnly(old: boolean): { disabled: boolean; title: string | undefined } {
  return { disabled: old, title: old ? "An older version is shown. Go to the latest to change the table." : undefined };
}
