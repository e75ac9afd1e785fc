// Fields of the dialogs.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Icon } from "../parts/basics.js";

export function Stepper({ label, hint, value, least, most, onValue }: { label: string; hint: string; value: number; least: number; most: number; onValue: (n: number) => void }): JSX.Element {
  // What is being typed is kept apart: whatever is drawn meanwhile (a plan that arrives) must not take it away.
  const [typed, setTyped] = useState<string | null>(null);
  const set = (n: number) => {
    setTyped(null);
    if (Number.isFinite(n)) onValue(Math.min(most, Math.max(least, Math.round(n))));
  };
  const id = `stepper-${label.toLowerCase()}`;
  return (
    <div class="stepper">
      <label for={id}>{label}</label>
      <div class="stepper-box">
        <button type="button" class="icon-button" aria-label={`Fewer ${label.toLowerCase()}`} disabled={value <= least} onClick={() => set(value - 1)}><Icon name="minus" /></button>
        <input id={id} type="text" inputMode="numeric" value={typed ?? value} aria-describedby={`${id}-hint`}
          onInput={(event) => setTyped(event.currentTarget.value)}
          onChange={(event) => set(event.currentTarget.value.trim() ? Number(event.currentTarget.value) : NaN)}
          onBlur={() => setTyped(null)}
          onKeyDown={(event) => {
            if (event.key === "ArrowUp") set(value + 1);
            else if (event.key === "ArrowDown") set(value - 1);
            else return;
            event.preventDefault();
          }} />
        <button type="button" class="icon-button" aria-label={`More ${label.toLowerCase()}`} disabled={value >= most} onClick={() => set(value + 1)}><Icon name="plus" /></button>
      </div>
      <small id={`${id}-hint`}>{hint}</small>
    </div>
  );
}

/** A field whose empty text means that nothing is chosen. `read` answers the value, `undefined` for nothing, `null` for what is none. */
export function TypedField<V>({ label, hint, wrong, placeholder, start, read, onValue }: {
  label: string; hint?: string; wrong: string; placeholder?: string; start: string; read: (text: string) => V | null | undefined; onValue: (value: V | null | undefined) => void;
}): JSX.Element {
  const [text, setText] = useState(start);
  const bad = read(text) === null;
  const id = `typed-${label.toLowerCase().replaceAll(/[^a-z]+/g, "-")}`;
  return (
    <label class="field">
      <span>{label}</span>
      <input type="text" inputMode="numeric" value={text} placeholder={placeholder} autocomplete="off" spellcheck={false} aria-invalid={bad} aria-describedby={hint || bad ? id : undefined}
        onInput={(event) => {
          setText(event.currentTarget.value);
          onValue(read(event.currentTarget.value));
        }} />
      {(hint || bad) && <small id={id}>{bad ? wrong : hint}</small>}
    </label>
  );
}
