// One question to the engine at a time: asked by a click, given up when the part that asked goes away.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { failureOf } from "../engine/client.js";
import type { ErrorDocument } from "../engine/documents.js";

export type Asked<A> = { is: "not asked" } | { is: "asking"; since: number } | { is: "answered"; answer: A; ms: number } | { is: "failed"; error: ErrorDocument };

/** `subject`: what is asked about; when it changes, the old answer goes and the old question is given up. */
export function useAsked<A>(subject: string): { asked: Asked<A>; ask: (work: (signal: AbortSignal) => Promise<A>) => void; stop: () => void } {
  const [asked, setAsked] = useState<Asked<A>>({ is: "not asked" });
  const control = useRef<AbortController | null>(null);
  useEffect(() => {
    setAsked({ is: "not asked" });
    return () => control.current?.abort();
  }, [subject]);
  const ask = useCallback((work: (signal: AbortSignal) => Promise<A>) => {
    control.current?.abort();
    const own = new AbortController();
    control.current = own;
    const since = performance.now();
    setAsked({ is: "asking", since });
    work(own.signal).then(
      (answer) => {
        if (!own.signal.aborted) setAsked({ is: "answered", answer, ms: performance.now() - since });
      },
      (error: unknown) => {
        if (!own.signal.aborted) setAsked({ is: "failed", error: failureOf(error) });
      },
    );
  }, []);
  const stop = useCallback(() => {
    control.current?.abort();
    setAsked({ is: "not asked" });
  }, []);
  return { asked, ask, stop };
}
