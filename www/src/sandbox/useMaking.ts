// Making a sandbox table anew. While it is made nothing is open, so that no answer about the old one can arrive late.

import { useCallback, useEffect, useState } from "preact/hooks";
import { failureOf } from "../engine/client.js";
import type { EngineClient } from "../engine/client.js";
import type { ErrorDocument, SandboxOptions } from "../engine/documents.js";
import type { Act } from "./calls.js";

export interface Making {
  name: string;
  options: SandboxOptions;
  acts: Act[];
}

export interface MakingState {
  making: boolean;
  failure: ErrorDocument | null;
  make: (what: Making) => void;
}

export function useMaking(client: EngineClient): MakingState {
  const [what, make] = useState<Making | null>(null);
  const [failure, setFailure] = useState<ErrorDocument | null>(null);
  useEffect(() => {
    if (!what) return;
    let here = true;
    setFailure(null);
    client.call("sandboxMake", what).then(
      () => { if (here) make(null); },
      (error: unknown) => {
        if (!here) return;
        setFailure(failureOf(error));
        make(null);
      },
    );
    return () => { here = false; };
  }, [what, client]);
  return { making: what !== null, failure, make: useCallback((next: Making) => make(next), []) };
}
