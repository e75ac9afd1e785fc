// Making a sandbox table anew. While it is made nothing is open, so that no answer about the old one can arrive late.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { failureOf } from "../engine/client.js";
import type { EngineClient } from "../engine/client.js";
import type { ErrorDocument, RowsDone, SandboxOptions } from "../engine/documents.js";
import { forgetAll } from "../lib/commits.js";
import { trying } from "../lib/keeping.js";
import { SANDBOX } from "./calls.js";
import type { Act } from "./calls.js";

export interface Making {
  name: string;
  options: SandboxOptions;
  acts: Act[];
}

export interface MakingState {
  making: boolean;
  /** Rows of what is written at the moment. */
  done: RowsDone | null;
  failure: ErrorDocument | null;
  make: (what: Making) => void;
  cancel: () => void;
}

export function useMaking(client: EngineClient): MakingState {
  const [what, make] = useState<Making | null>(null);
  const [done, setDone] = useState<RowsDone | null>(null);
  const [failure, setFailure] = useState<ErrorDocument | null>(null);
  const running = useRef<AbortController | null>(null);
  useEffect(() => {
    if (!what) return;
    let here = true;
    const control = new AbortController();
    running.current = control;
    setFailure(null);
    setDone(null);
    trying((storage) => forgetAll(storage, SANDBOX + what.name));
    client.call("sandboxMake", what, { signal: control.signal, rows: (rows, rows_total) => { if (here) setDone({ rows, rows_total }); } }).then(
      () => { if (here) make(null); },
      (error: unknown) => {
        if (!here) return;
        setFailure(failureOf(error));
        make(null);
      },
    );
    return () => { here = false; };
  }, [what, client]);
  return { making: what !== null, done, failure, make: useCallback((next: Making) => make(next), []), cancel: useCallback(() => running.current?.abort(), []) };
}
