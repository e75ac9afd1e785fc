// What the address bar remembers: everything a colleague needs to see the same screen, and nothing secret.

import { UPKEEP } from "../jobs/choice.js";
import type { Job } from "../jobs/choice.js";

export type Selection =
  | { kind: "fragment"; id: number }
  | { kind: "pair"; a: number; b: number }
  | { kind: "segment"; uuid: string }
  | { kind: "index"; name: string }
  /** Of the reuse history. */
  | { kind: "transition"; position: number };

/** What the layout panel shows. */
export const VIEWS = ["map", "table", "history", "what-if", "sql"] as const;
export type View = (typeof VIEWS)[number];

/** A lesson and its step, counted from 0. */
export interface LessonPlace {
  id: string;
  step: number;
}

export interface PageState {
  /** Address of the table as it was typed, without secrets. */
  url: string | null;
  version: number | null;
  selection: Selection | null;
  widths: "rows" | "equal";
  groups: boolean;
  view: View;
  /** Visible part of the axis as shares of the whole, null when everything is in view. */
  window: [number, number] | null;
  query: string;
  /** Whether the changes from the version before are shown. */
  changes: boolean;
  /** The dialog that is open. */
  job: Job | null;
  segments: number;
  lesson: LessonPlace | null;
}

export const EMPTY_STATE: PageState = {
  url: null, version: null, selection: null, widths: "rows", groups: true, view: "map", window: null, query: "", changes: false, job: null, segments: 1, lesson: null,
};

/** Query keys that carry a signature, a token or a key in the usual object stores. */
const SECRET_KEYS = /^(x-amz-(signature|credential|security-token|date|expires|signedheaders|algorithm)|awsaccesskeyid|signature|sig|se|sp|sv|sr|token|access_token|x-goog-(signature|credential)|key|password)$/i;

/** The address without user name, password or signed query parameters. */
export function withoutSecrets(address: string): string {
  let parsed: URL;
  try {
    parsed = new URL(address);
  } catch {
    return address;
  }
  if (!parsed.host && !parsed.search) return address;
  parsed.username = "";
  parsed.password = "";
  for (const name of [...parsed.searchParams.keys()]) if (SECRET_KEYS.test(name)) parsed.searchParams.delete(name);
  parsed.hash = "";
  // URL adds a slash to a bare host; anything else is given back as it is spelled.
  return parsed.toString();
}

function whole(text: string | null): number | null {
  if (text === null || !/^\d{1,15}$/.test(text)) return null;
  return Number(text);
}

export function parseState(search: string): PageState {
  const p = new URLSearchParams(search);
  const url = p.get("url");
  const state: PageState = { ...EMPTY_STATE, url: url ? url : null };
  state.version = whole(p.get("v"));
  state.selection = parseSelection(p.get("sel"));
  state.widths = p.get("w") === "equal" ? "equal" : "rows";
  state.groups = p.get("groups") !== "off";
  state.view = VIEWS.find((view) => view === p.get("view")) ?? "map";
  state.query = (p.get("q") ?? "").slice(0, 200);
  state.changes = p.get("changes") === "on";
  state.job = parseJob(p);
  const n = whole(p.get("n"));
  const lesson = /^([a-z-]{1,40})(?:\.(\d{1,2}))?$/.exec(p.get("lesson") ?? "");
  if (lesson) state.lesson = { id: lesson[1]!, step: Math.max(0, Number(lesson[2] ?? 1) - 1) };
  state.segments = n !== null && n >= 1 && n <= 1000 ? n : 1;
  const zoom = /^([01](?:\.\d+)?)-([01](?:\.\d+)?)$/.exec(p.get("z") ?? "");
  if (zoom) {
    const a = Number(zoom[1]);
    const b = Number(zoom[2]);
    if (a >= 0 && b <= 1 && b > a) state.window = [a, b];
  }
  return state;
}

const ON_INDEX = ["refresh", "merge", "drop"] as const;

function parseJob(p: URLSearchParams): Job | null {
  for (const kind of ON_INDEX) {
    const index = p.get(kind);
    if (index) return { kind, index };
  }
  if (p.has("compact")) return { kind: "compact", rows: whole(p.get("compact")) || null };
  for (const kind of UPKEEP) if (p.has(kind)) return { kind };
  return p.has("create") ? { kind: "create" } : null;
}

/** What stands behind the name of a job: its index, the rows a fragment should have, or a word, since an empty value looks like a slip. */
function jobValue(job: Job): string {
  if ("index" in job) return job.index;
  if (job.kind === "compact") return job.rows === null ? "table" : String(job.rows);
  return job.kind === "create" ? "index" : job.kind === "orphans" ? "table" : "history";
}

function parseSelection(text: string | null): Selection | null {
  if (!text) return null;
  const cut = text.indexOf(":");
  const kind = text.slice(0, cut);
  const rest = text.slice(cut + 1);
  if (kind === "fragment") {
    const id = whole(rest);
    return id === null ? null : { kind: "fragment", id };
  }
  if (kind === "pair") {
    const [a, b] = rest.split(",").map(whole);
    return a === null || b === null || a === undefined || b === undefined ? null : { kind: "pair", a, b };
  }
  if (kind === "segment") return /^[0-9a-f-]{36}$/i.test(rest) ? { kind: "segment", uuid: rest.toLowerCase() } : null;
  if (kind === "transition") {
    const position = whole(rest);
    return position === null ? null : { kind: "transition", position };
  }
  if (kind === "index" && rest) return { kind: "index", name: rest };
  return null;
}

export function formatSelection(s: Selection): string {
  switch (s.kind) {
    case "fragment": return `fragment:${s.id}`;
    case "pair": return `pair:${s.a},${s.b}`;
    case "segment": return `segment:${s.uuid}`;
    case "index": return `index:${s.name}`;
    case "transition": return `transition:${s.position}`;
  }
}

/** The query string for a state; defaults are left out, so that a fresh page has a short address. */
export function formatState(state: PageState): string {
  const p = new URLSearchParams();
  if (state.url) p.set("url", withoutSecrets(state.url));
  if (state.version !== null) p.set("v", String(state.version));
  if (state.selection) p.set("sel", formatSelection(state.selection));
  if (state.widths === "equal") p.set("w", "equal");
  if (!state.groups) p.set("groups", "off");
  if (state.view !== "map") p.set("view", state.view);
  if (state.window) p.set("z", state.window.map((x) => trimZeros(x.toFixed(6))).join("-"));
  if (state.query) p.set("q", state.query);
  if (state.changes) p.set("changes", "on");
  if (state.job) p.set(state.job.kind, jobValue(state.job));
  if (state.segments !== 1) p.set("n", String(state.segments));
  if (state.lesson) p.set("lesson", `${state.lesson.id}.${state.lesson.step + 1}`);
  const text = p.toString().replaceAll("%2F", "/").replaceAll("%3A", ":").replaceAll("%2C", ",");
  return text ? `?${text}` : "";
}

function trimZeros(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}
