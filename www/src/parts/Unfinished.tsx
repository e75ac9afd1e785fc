// Jobs that were being committed when their tab ended, and what became of them.

import type { JSX } from "preact";
import { jobWords } from "../lib/commits.js";
import type { Fate, KeptCommit } from "../lib/commits.js";
import { count, name } from "../lib/format.js";
import { Copyable, Icon } from "./basics.js";

export interface Found {
  commit: KeptCommit;
  fate: Fate;
}

const ENDED = "was being committed when its tab was closed";

export function Unfinished({ found, onForget, onAsk }: { found: Found[]; onForget: (transaction: string) => void; onAsk: () => void }): JSX.Element | null {
  if (found.length === 0) return null;
  return (
    <ul class="unfinished" aria-label="Unfinished commits" role="status">
      {found.map(({ commit, fate }) => (
        <li key={commit.transaction} class="note" data-fate={fate.is}>
          <Icon name={fate.is === "landed" ? "check" : fate.is === "lost" || fate.is === "begun" ? "info" : "warn"} />
          <span>
            {jobWords(commit.job).name}{jobWords(commit.job).ofIndex && <> of <b title={commit.index_name}>{name(commit.index_name)}</b></>} {ENDED}. {said(fate, commit)}
            {fate.is !== "landed" && <> Transaction <Copyable value={commit.transaction} label="the transaction" /></>}
          </span>
          {fate.is === "landed" || fate.is === "lost" || fate.is === "begun"
            ? <button type="button" class="link" onClick={() => onForget(commit.transaction)}>Dismiss</button>
            : <button type="button" class="link" onClick={onAsk}>Ask again</button>}
        </li>
      ))}
    </ul>
  );
}

function said(fate: Fate, commit: KeptCommit): string {
  switch (fate.is) {
    case "landed": return `It landed: version ${count(fate.version)} is its work.`;
    case "begun": return `It did not get to its end: version ${count(fate.version)} ${jobWords(commit.job).begun}`;
    case "lost": return `It did not land: ${jobWords(commit.job).lost}`;
    case "pending": return `It has not landed so far; a request on its way could still become version ${count(commit.version)}.`;
    case "unknown": return `What became of it could not be found out: ${fate.why}`;
  }
}
