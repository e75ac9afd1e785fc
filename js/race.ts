// Does this store let exactly one of several racing writers create an object? The question every commit hangs on (design §8).
import { aborted, currentEngine } from "./engine.js";
import type { Engine } from "./engine.js";
import { WhetstoneError } from "./errors.js";
import { Objects } from "./objects.js";
import type { StoreInfo } from "./objects.js";
import { platform } from "./platform.js";
import type { Store } from "./stores.js";

/** @internal Writers that race for one object, and how often. */
export const CONTENDERS = 12;
/** @internal */
export const ROUNDS = 20;

/** @internal What a check of create-if-absent found; `wrong` is `null` when commits are safe, else the end of a sentence "the store …". */
export interface CreateFindings {
  wrong: string | null;
  /** What kind of trouble; `null` without. */
  fault: "denied" | "refused" | "ignored" | "raced" | "unreadable" | null;
  rounds: number;
  /** Most writers that were told in one round that they had created the object. */
  most_winners: number;
  /** Rounds in which not exactly one writer was told so. */
  bad_rounds: number;
}

/** What a reader finds under a name; `null` when there is nothing. */
async function contentOf(objects: Objects, path: string): Promise<string | null> {
  try {
    return decode(await objects.get(path));
  } catch (error) {
    if (WhetstoneError.from(error).detail["not_found"] === true) return null;
    throw error;
  }
}

const STORES_NOTHING = "answers that it created an object, and the object is not there when it is read";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** @internal A name that no other check uses, below the store's root. */
export function checkFolder(): string {
  return `_whetstone_check-${crypto.randomUUID()}`;
}

/** @internal One writer after the other: the second must be told that the object is there, and must not have touched it. */
export async function createTwice(objects: Objects, path: string): Promise<Pick<CreateFindings, "wrong" | "fault">> {
  let first;
  try {
    first = await objects.create(path, encode("first"));
  } catch (error) {
    const { code, detail, message } = WhetstoneError.from(error);
    // Some refuse every condition and take the same request without one.
    if (code === "STORE_DENIED") return { fault: "denied", wrong: `does not let these credentials create objects (${message})` };
    const status = detail["status"];
    if (status === 405) return { fault: "refused", wrong: "takes no writes (status 405)" };
    if (status === 501 || status === 400) {
      return { fault: "refused", wrong: `refuses to create an object only if it is absent (status ${status}): it has no conditional writes` };
    }
    throw error;
  }
  if (first.outcome === "unclear") throw first.error;
  if (first.outcome === "exists") return { fault: "refused", wrong: "says that an object is there which nobody wrote" };
  const second = await objects.create(path, encode("second")).catch((error: unknown) => {
    const { detail } = WhetstoneError.from(error);
    if (typeof detail["status"] === "number") return { outcome: "exists" as const };
    throw error;
  });
  const content = await contentOf(objects, path);
  if (content === null) return { fault: "unreadable", wrong: STORES_NOTHING };
  if (second.outcome === "created" || content === "second") {
    return { fault: "ignored", wrong: `ignores the condition "only if absent": a second writer ${content === "second" ? "replaced the object" : "was told that it had created the object too"}` };
  }
  if (content !== "first") return { fault: "unreadable", wrong: "gave back something else than was written" };
  return { fault: null, wrong: null };
}

/** @internal Many writers at once, again and again. Content decides who won; every answer but "created" is a loser's. */
export async function raceRounds(writers: Objects[], folder: string, rounds: number): Promise<CreateFindings> {
  const found: CreateFindings = { wrong: null, fault: null, rounds, most_winners: 0, bad_rounds: 0 };
  let replaced = 0;
  let missing = 0;
  const round = async (number: number): Promise<void> => {
    const path = `${folder}/race-${number}`;
    const answers = await Promise.all(writers.map(async (writer, i) => {
      const answer = await writer.create(path, encode(`writer ${i}`));
      return answer.outcome === "created";
    }));
    const winners = answers.flatMap((won, i) => (won ? [i] : []));
    found.most_winners = Math.max(found.most_winners, winners.length);
    // With no winner a reply may have been lost, and then somebody's content is there; with one it has to be the winner's.
    const content = await contentOf(writers[0] as Objects, path);
    const owner = /^writer (\d+)$/.exec(content ?? "")?.[1];
    const fine = winners.length <= 1 && owner !== undefined && (winners.length === 0 || Number(owner) === winners[0]);
    if (winners.length === 1 && !fine) {
      if (content === null) missing += 1;
      else replaced += 1;
    }
    if (!fine) found.bad_rounds += 1;
  };
  for (let number = 0; number < rounds; number += 1) await round(number);
  if (found.most_winners > 1) {
    found.fault = "raced";
    found.wrong = `looks right one request at a time, but in ${found.bad_rounds} of ${rounds} races of ${writers.length} writers more than one (up to ${found.most_winners}) was told that it had created the object`;
  } else if (found.bad_rounds > 0) {
    found.fault = "raced";
    found.wrong = `looks right one request at a time, but in ${found.bad_rounds} of ${rounds} races of ${writers.length} writers the object was not the winner's${replaced > 0 ? ": another writer replaced it" : missing > 0 ? ": it was not there when it was read" : ""}`;
  }
  return found;
}

/** @internal Both, in a folder of their own that is removed again. */
export async function checkCreates(engine: Engine, store: Store, signal?: AbortSignal): Promise<CreateFindings> {
  if (signal?.aborted) throw aborted();
  if (signal !== undefined) platform().manyListeners?.(signal);
  const folder = checkFolder();
  const writers = Array.from({ length: CONTENDERS }, () => new Objects(engine, store, { signal }));
  const first = writers[0] as Objects;
  try {
    const alone = await createTwice(first, `${folder}/alone`);
    if (alone.wrong !== null) return { ...alone, rounds: 0, most_winners: 0, bad_rounds: 0 };
    return await raceRounds(writers, folder, ROUNDS);
  } finally {
    await clearFolder(first, folder, ["alone", ...Array.from({ length: ROUNDS }, (_, i) => `race-${i}`)]);
    for (const writer of writers) writer.close();
  }
}

/** @internal Removes what a check wrote; answers what is still there. */
export async function clearFolder(objects: Objects, folder: string, names: string[]): Promise<string[]> {
  const left: string[] = [];
  await Promise.all(names.map((name) => objects.delete(`${folder}/${name}`).catch(() => { left.push(`${folder}/${name}`); })));
  // Where folders exist, an empty one is left; where they do not, there is nothing of that name.
  if (left.length === 0) await objects.delete(folder).catch(() => undefined);
  return left;
}

/** @internal Verdicts on stores that have been raced before, by the place their objects are in. */
export interface Verdicts {
  get(place: string): string | null | undefined;
  set(place: string, wrong: string | null): void;
}

const raced = new Map<string, string | null>();
let verdicts: Verdicts = { get: (place) => raced.get(place), set: (place, wrong) => { raced.set(place, wrong); } };
const hosts = new WeakMap<object, string | null>();

/** @internal Keeps verdicts elsewhere too, e.g. beyond the end of the process. */
export function keepVerdicts(keeper: Verdicts): void {
  verdicts = keeper;
}

/** Scheme, host and bucket: what answers for atomicity. Never anything secret; `null` for functions of the caller's. */
function placeOf({ descriptor }: Store): string | null {
  if (descriptor.kind === "host") return null;
  const url = new URL(descriptor.url);
  const host = descriptor.endpoint === undefined ? `${url.protocol}//${url.host}` : `${url.protocol}//${url.host} at ${new URL(descriptor.endpoint).host}`;
  return `${host}/${url.pathname.split("/")[1] ?? ""} ${descriptor.kind}`;
}

/**
 * @internal Refuses a store whose create-if-absent is not atomic. One that is not known to be is raced first, once: 12 writers, 20 times.
 */
export async function ensureCommits(store: Store, info: StoreInfo, found: (wrong: string | null) => void, signal?: AbortSignal): Promise<void> {
  if (info.anyway || info.commits === "atomic") return;
  const place = placeOf(store);
  let wrong = info.commits === "refused" ? info.why : place === null ? hosts.get(store) : verdicts.get(place);
  if (wrong === undefined) {
    const findings = await checkCreates(await currentEngine(), store, signal).catch((error: unknown) => { throw untouched(error, info.uri); });
    wrong = findings.wrong;
    if (findings.fault === "denied") throw new WhetstoneError("STORE_DENIED", `${info.uri} ${wrong}. Nothing was changed`, { uri: info.uri });
    if (place === null) hosts.set(store, wrong);
    else verdicts.set(place, wrong);
  }
  if (info.commits === "unproven") found(wrong);
  if (wrong !== null) throw unsafeStore(info.uri, wrong);
}

/** Whatever the check met, the table is as it was. */
function untouched(error: unknown, uri: string): WhetstoneError {
  const { code, message, detail } = WhetstoneError.from(error);
  if (code === "ABORTED") return aborted();
  return new WhetstoneError(code, `${message} (while seeing whether ${uri} can be committed to)`, detail, "nothing", { cause: error });
}

/** @internal */
export function unsafeStore(uri: string, wrong: string): WhetstoneError {
  return new WhetstoneError("STORE_UNSAFE",
    `${uri} is read-only: the store ${wrong}. Two writers could each believe that their commit is the table's. Nothing was changed; \`whetstone store-check\` tells more, and unsafeCommits (--unsafe-commits) commits all the same`,
    { uri, wrong });
}
