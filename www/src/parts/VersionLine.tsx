// The version line: one stop per version. Arrow keys step, space plays.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { VersionInfo } from "../engine/documents.js";
import { count, moment } from "../lib/format.js";
import { Icon } from "./basics.js";

const PLAY_MS = 700;

export function VersionLine({ versions, version, latest, changes, onVersion, onChanges }: {
  versions: VersionInfo[] | null; version: number | null; latest: number | null; changes: boolean; onVersion: (version: number | null) => void; onChanges: (shown: boolean) => void;
}): JSX.Element {
  const [playing, setPlaying] = useState(false);
  const list = versions ?? [];
  const found = list.findIndex((v) => v.version === version);
  const at = found < 0 ? list.length - 1 : found;
  const last = list.length - 1;
  const go = (to: number) => {
    const next = list[Math.min(last, Math.max(0, to))];
    if (next) onVersion(next.version === latest ? null : next.version);
  };
  useEffect(() => {
    if (!playing) return;
    if (at >= last) {
      setPlaying(false);
      return;
    }
    const timer = setTimeout(() => go(at + 1), PLAY_MS);
    return () => clearTimeout(timer);
  }, [playing, at, last]);
  const toggle = () => {
    if (!playing && at >= last) go(0);
    setPlaying(!playing);
  };
  const still = list.length < 2;
  const info = list[at];
  return (
    <div class="version-line" title={info?.modified ? `Written ${moment(info.modified)}` : undefined}>
      <span class="version-number">v&nbsp;{version === null ? "–" : count(version)}</span>
      <button type="button" class="icon-button" disabled={still} onClick={toggle} aria-label={playing ? "Stop playing versions" : "Play versions"} title={playing ? "Stop" : "Play versions"}>
        <Icon name={playing ? "pause" : "play"} filled={!playing} />
      </button>
      <input
        type="range" min={0} max={Math.max(1, last)} step={1} value={last < 1 ? 1 : at} disabled={still} aria-label="Version"
        aria-valuetext={info ? `version ${info.version}${info.version === latest ? ", latest" : ""}` : undefined}
        style={{ "--share": `${last < 1 ? 100 : (at / last) * 100}%` } as JSX.CSSProperties}
        onInput={(event) => {
          setPlaying(false);
          go(Number(event.currentTarget.value));
        }}
        onKeyDown={(event) => {
          if (event.key !== " ") return;
          event.preventDefault();
          toggle();
        }}
      />
      <button type="button" class="icon-button" aria-pressed={changes} disabled={version === null || versions === null} aria-label="Changes from the version before" title="Changes from the version before" onClick={() => onChanges(!changes)}><Icon name="changes" /></button>
      <button type="button" class={`latest${version !== null && version === latest ? " is-latest" : ""}`} disabled={version === null || version === latest} onClick={() => { setPlaying(false); onVersion(null); }}>latest</button>
    </div>
  );
}
