/// <reference lib="webworker" />
// The page without a network: its own files are kept, so that tables in local folders open as ever. Tables are never kept: whatever is
// not a file of the page passes by untouched. A new build is used at the next load, since the page itself is asked for first.

const scope = self as unknown as ServiceWorkerGlobalScope;

/** The files of this build with what tells their contents apart, put in by the build. */
declare const PAGE_FILES: [path: string, revision: string][];

const HOME = new URL(scope.registration.scope);
const PREFIX = "whetstone-page-";
const DOCS = "whetstone-docs";
const CACHE = PREFIX + PAGE_FILES.map(([path, revision]) => path + revision).reduce((h, text) => hash(text, h), 0x811c9dc5).toString(16);
const OWN = new Set(PAGE_FILES.map(([path]) => path));
/** A script, style or engine of this build or of one before, that an open tab may still ask for. */
const HASHED = /^[\w-]+\.[0-9a-f]{10}\.(?:js|css|wasm)$/;

function hash(text: string, start: number): number {
  let h = start;
  for (let i = 0; i < text.length; i += 1) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return h;
}

scope.addEventListener("install", (event) => {
  event.waitUntil((async () => {
    const cache = await caches.open(CACHE);
    // Names with a hash may come from the browser's own cache; the page itself has to be the newest.
    await Promise.all(PAGE_FILES.map(async ([path]) => {
      const url = new URL(path, HOME);
      const answer = await fetch(url, { cache: HASHED.test(path) ? "default" : "no-cache" });
      if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
      await cache.put(url, answer);
    }));
    await scope.skipWaiting();
  })());
});

scope.addEventListener("activate", (event) => {
  event.waitUntil((async () => {
    await scope.clients.claim();
    await forgetOldBuilds();
  })());
});

/** Builds before this one go when no other tab is open that was loaded from them. */
async function forgetOldBuilds(): Promise<void> {
  const tabs = await scope.clients.matchAll({ type: "window", includeUncontrolled: true });
  if (tabs.length > 1) return;
  for (const name of await caches.keys()) if (name.startsWith(PREFIX) && name !== CACHE) await caches.delete(name);
}

scope.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== HOME.origin || !url.pathname.startsWith(HOME.pathname)) return;
  const path = url.pathname.slice(HOME.pathname.length);
  if (path === "" || path === "index.html") event.respondWith(newest(request, new URL("index.html", HOME), CACHE));
  else if (HASHED.test(path)) event.respondWith(kept(request));
  else if (OWN.has(path)) event.respondWith(newest(request, url, CACHE));
  else if (/^docs\/[\w-]+\.(?:html|png|svg)$/.test(path)) event.respondWith(newest(request, url, DOCS));
});

/** From the network while there is one, else what was kept. */
async function newest(request: Request, key: URL, into: string): Promise<Response> {
  try {
    const answer = await fetch(request);
    if (answer.ok && into === DOCS) await (await caches.open(into)).put(key, answer.clone());
    return answer;
  } catch (error) {
    const found = await (await caches.open(into)).match(key);
    if (found) return found;
    throw error;
  }
}

/** The contents of such a name never change. */
async function kept(request: Request): Promise<Response> {
  return await caches.match(request, { ignoreSearch: true }) ?? fetch(request);
}
