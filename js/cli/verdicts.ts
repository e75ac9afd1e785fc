// What racing found of stores, kept between runs of the command, so that not every refresh on the same store begins with races.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import type { Verdicts } from "../race.js";

interface Kept {
  wrong: string | null;
  /** Milliseconds since 1970. */
  at: number;
}

const DAY = 24 * 3600_000;
/** A server may be replaced by another: one on this machine within minutes. One that failed may have been mended. */
const GOOD_FOR = { here: 10 * 60_000, safe: 7 * DAY, unsafe: 10 * 60_000 };

/** Places (scheme, host, bucket) and verdicts, in the user's cache folder. Nothing secret is in it; losing it costs a race. */
export function fileVerdicts(): Verdicts {
  const file = path.join(process.env["XDG_CACHE_HOME"] || path.join(homedir(), ".cache"), "whetstone", "stores.json");
  const read = (): Record<string, Kept> => {
    try {
      const kept = JSON.parse(readFileSync(file, "utf8")) as Record<string, Kept>;
      return typeof kept === "object" && kept !== null ? kept : {};
    } catch {
      return {};
    }
  };
  const isGood = (place: string, kept: Kept): boolean => {
    const here = /\/\/(localhost|127\.[\d.]+|\[::1\])[:/]| at (localhost|127\.|\[::1\])/.test(place);
    const age = Date.now() - kept.at;
    return age >= 0 && age < (kept.wrong !== null ? GOOD_FOR.unsafe : here ? GOOD_FOR.here : GOOD_FOR.safe);
  };
  return {
    get(place) {
      const kept = read()[place];
      return kept !== undefined && (kept.wrong === null || typeof kept.wrong === "string") && isGood(place, kept) ? kept.wrong : undefined;
    },
    set(place, wrong) {
      const kept = Object.fromEntries(Object.entries(read()).filter(([name, one]) => isGood(name, one)));
      try {
        mkdirSync(path.dirname(file), { recursive: true });
        writeFileSync(`${file}.${process.pid}`, JSON.stringify({ ...kept, [place]: { wrong, at: Date.now() } }), { mode: 0o600 });
        renameSync(`${file}.${process.pid}`, file);
      } catch {
        // A cache that cannot be written costs time only.
      }
    },
  };
}
