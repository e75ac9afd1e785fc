import type { JSX } from "preact";
import type { ErrorDocument } from "../engine/documents.js";
import { explain } from "../lib/errors.js";
import { count, name, plural } from "../lib/format.js";
import { Copyable, Icon } from "./basics.js";

/** Objects named one by one; all of them are copied. */
const LEFT_SHOWN = 4;

/** An error as a person needs it: what happened, to which object, what was changed, what to do. */
export function ErrorPanel({ failure, target, onRetry, onOther }: {
  failure: ErrorDocument; target: string | null; onRetry?: () => void; onOther?: { label: string; act: () => void } | undefined;
}): JSX.Element {
  const e = explain(failure, window.location.origin, target);
  return (
    <section class="error" role="alert">
      <h2><Icon name="warn" /> {e.title}</h2>
      <p class="error-what">{e.what}</p>
      <dl>
        {e.object && <div><dt>Object</dt><dd><Copyable value={e.object} label="the object" /></dd></div>}
        <div><dt>Changed</dt><dd>{e.changed}</dd></div>
        {e.left.length > 0 && <div><dt>Left behind</dt><dd><Copyable value={e.left.join("\n")} label="the names of the files">{plural(e.left.length, "file")}: {e.left.slice(0, LEFT_SHOWN).map(name).join(", ")}{e.left.length > LEFT_SHOWN && ` and ${count(e.left.length - LEFT_SHOWN)} more`}</Copyable></dd></div>}
        {e.steps.length > 0 && <div><dt>What to do</dt><dd>{e.steps.length === 1 ? e.steps[0] : <ol>{e.steps.map((step) => <li key={step}>{step}</li>)}</ol>}</dd></div>}
        <div><dt>Code</dt><dd><Copyable value={failure.code} label="the error code" /></dd></div>
      </dl>
      {e.paste.map(({ label, text }) => (
        <figure key={label} class="paste">
          <figcaption>{label} <Copyable value={text} label={`the rule for ${label}`}>{""}</Copyable></figcaption>
          <pre tabIndex={0}>{text}</pre>
        </figure>
      ))}
      <div class="button-row">
        {e.retry && onRetry && <button type="button" class="button primary" onClick={onRetry}>Try again</button>}
        {onOther && <button type="button" class={`button${e.retry && onRetry ? "" : " primary"}`} onClick={onOther.act}>{onOther.label}</button>}
      </div>
    </section>
  );
}
