// A list of what becomes of things, and the line under every list that is cut off.

import type { ComponentChildren, JSX } from "preact";
import { count } from "../lib/format.js";

export interface Fate {
  key: string | number;
  /** Whose fate it is; `title` is its full name. */
  who: ComponentChildren;
  title?: string | undefined;
  fate: string;
  tone: "kept" | "removed" | "quiet";
  why: ComponentChildren;
}

const SHOWN = 60;

export function Fates<T>({ of, most = SHOWN, class: name, fate }: { of: readonly T[]; most?: number; class?: string; fate: (one: T, i: number) => Fate }): JSX.Element {
  return (
    <>
      <ul class={`fates${name ? ` ${name}` : ""}`}>
        {of.slice(0, most).map(fate).map((one) => (
          <li key={one.key}>
            <span class="fate-uuid" title={one.title}>{one.who}</span>
            <span class={`fate fate-${one.tone}`}>{one.fate}</span>
            <span class="fate-why">{one.why}</span>
          </li>
        ))}
      </ul>
      <More all={of.length} shown={most} />
    </>
  );
}

/** "and 40 more", where a list is longer than what is shown of it. */
export function More({ all, shown, children }: { all: number; shown: number; children?: ComponentChildren }): JSX.Element | null {
  return all > shown ? <p class="quiet">and {count(all - shown)} more{children}</p> : null;
}
