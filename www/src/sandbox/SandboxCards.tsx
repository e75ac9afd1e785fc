// The sandbox where a table is opened: one's own tables and the lessons.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { EngineClient } from "../engine/client.js";
import { LessonCards } from "../lessons/LessonCards.js";
import { LESSONS } from "../lessons/lessons.js";
import { SANDBOX } from "./calls.js";

export function SandboxCards({ client, onOpen, onNew, onLesson }: { client: EngineClient; onOpen: (target: string) => void; onNew: () => void; onLesson: (id: string) => void }): JSX.Element {
  const [names, setNames] = useState<string[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    // Only a list: without it the lessons and a new table are still there.
    client.call("sandboxes", null, { signal: abort.signal }).then((place) => setNames(place.names.filter((name) => !LESSONS.some((lesson) => lesson.id === name))), () => undefined);
    return () => abort.abort();
  }, [client]);
  return (
    <section aria-labelledby="sandbox-title">
      <h3 id="sandbox-title">Sandbox</h3>
      <p class="quiet sandbox-intro">Real tables in this browser, to try things on: nothing leaves it.</p>
      <div class="button-row">
        <button type="button" class="button small" onClick={onNew}>New table…</button>
        {names.map((name) => <button key={name} type="button" class="button small" onClick={() => onOpen(SANDBOX + name)}>{name}</button>)}
      </div>
      <LessonCards onLesson={onLesson} />
    </section>
  );
}
