// May a page of another origin use this store? In a page the requests themselves tell; elsewhere its preflights are sent for it.
import type { Finding, StoreCheck } from "./conformance.js";
import type { Objects, StoreInfo } from "./objects.js";
import type { Store } from "./stores.js";
import type { RequestEvent } from "./types.js";

/** The page to ask for when none was named: nobody allows it by name. */
const SOME_ORIGIN = "https://page.example";
const WANTED = ["Content-Range", "ETag"];

/** @internal */
export async function corsChecks(
  store: Store, info: StoreInfo, origin: string | undefined, open: (headers: Record<string, string>) => Objects, path: string | null, last: () => RequestEvent | undefined,
): Promise<StoreCheck[]> {
  if (inBrowser()) return [named("cors", { status: "ok", seen: "this page reads and writes there" })];
  const page = origin ?? SOME_ORIGIN;
  const checks: StoreCheck[] = [];
  if (path === null) checks.push(named("cors_read", { status: "skipped", seen: "there is nothing to read" }));
  else {
    const reader = open({ origin: page });
    try {
      await reader.get(path, 0, 5).catch(() => undefined);
    } finally {
      reader.close();
    }
    checks.push(...readChecks(last()?.headers ?? {}, page));
  }
  checks.push(named("cors_write", await preflights(store, info, page)));
  return checks;
}

/** @internal A page or a worker of one: it cannot choose its headers, nor send preflights by hand. */
export function inBrowser(): boolean {
  return typeof document !== "undefined" || "WorkerGlobalScope" in globalThis && !("Deno" in globalThis);
}

function named(name: string, { status, seen }: Finding): StoreCheck {
  return { name, status, seen };
}

function readChecks(headers: Record<string, string>, page: string): StoreCheck[] {
  const allowed = headers["access-control-allow-origin"];
  if (allowed !== "*" && allowed !== page) {
    return [named("cors_read", { status: "warning", seen: `pages of ${page} are not allowed to read: the answer names ${allowed === undefined ? "no origin" : allowed}` })];
  }
  const exposed = (headers["access-control-expose-headers"] ?? "").toLowerCase().split(",").map((name) => name.trim());
  const hidden = exposed.includes("*") ? [] : WANTED.filter((name) => !exposed.includes(name.toLowerCase()));
  if (hidden.length > 0) return [named("cors_read", { status: "warning", seen: `pages of ${page} may read, but do not see ${hidden.join(" and ")}: expose them` })];
  return [named("cors_read", { status: "ok", seen: `pages of ${page} may read, and see ${WANTED.join(" and ")}` })];
}

async function preflights(store: Store, info: StoreInfo, page: string): Promise<Finding> {
  const address = addressOf(store, info);
  if (address === null) return { status: "skipped", seen: "the address of an object is not known here" };
  const asks: [string, string][] = [
    ["GET", "range"],
    ["PUT", info.kind === "gcs" ? "content-type,x-goog-if-generation-match" : info.kind === "azure" ? "content-type,if-none-match,x-ms-blob-type" : "content-type,if-none-match"],
    ["DELETE", ""],
    ...(info.kind === "webdav" ? [["PROPFIND", "depth"] as [string, string]] : []),
  ];
  const refused: string[] = [];
  for (const [method, headers] of asks) {
    const answer = await fetch(`${address}/_whetstone_check`, {
      method: "OPTIONS",
      redirect: "manual", // as browsers: a preflight that is redirected is refused
      headers: { Origin: page, "Access-Control-Request-Method": method, ...(headers === "" ? {} : { "Access-Control-Request-Headers": headers }) },
    }).catch(() => null);
    const list = (name: string): string[] => (answer?.headers.get(name) ?? "").toLowerCase().split(",").map((word) => word.trim());
    const origins = list("access-control-allow-origin");
    const allows = (name: string, word: string): boolean => list(name).includes(word) || list(name).includes("*");
    const fine = answer !== null && answer.ok && (origins.includes("*") || origins.includes(page.toLowerCase()))
      && (method === "GET" || allows("access-control-allow-methods", method.toLowerCase()))
      && headers.split(",").every((header) => header === "" || header === "range" || allows("access-control-allow-headers", header));
    await answer?.body?.cancel();
    if (!fine) refused.push(method);
  }
  if (refused.length === 0) return { status: "ok", seen: `pages of ${page} may write: preflights of ${asks.map(([method]) => method).join(", ")} are answered` };
  return { status: "warning", seen: `pages of ${page} may not ${refused.join(", ")}: their preflight is refused, or does not allow the headers that are sent` };
}

/** Where the objects of a store are, for a request that needs no credentials. */
function addressOf(store: Store, info: StoreInfo): string | null {
  if (/^https?:/.test(info.uri)) return info.uri.split("/").map((part, i) => (i < 3 ? part : encodeURIComponent(decode(part)))).join("/");
  const s3 = /^s3:\/\/([^/]+)\/?(.*)$/.exec(info.uri);
  if (s3 === null) return null;
  return `https://s3.${store.descriptor.region ?? "us-east-1"}.amazonaws.com/${s3[1]}/${encodeURI(s3[2] ?? "")}`;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
