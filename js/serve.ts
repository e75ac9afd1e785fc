/**
 * `whetstone serve DIR`: a small, careful HTTP object endpoint for a folder, which also serves the page.
 *
 * Objects are below `/tables/`; the page, when there is one, is at `/`. Only loopback is listened on and only loopback names are
 * answered unless a host is given, and only pages of loopback origins (or those allowed by name) may read across origins.
 */
import { realpath, rmdir } from "node:fs/promises";
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import send from "send";
import { deleteObject, getObject, listFolder, putObject } from "./serve/objects.js";
import type { ObjectRoot } from "./serve/objects.js";
import { fileRefusal, Refusal, segmentsOf, UPLOADS } from "./serve/paths.js";

/** What to serve, where, and to whom. */
export interface ServeOptions {
  /** Folder whose files are served below `/tables/`. */
  root: string;
  /** Folder of the built page, served at `/`. */
  page?: string;
  /** Address to listen on; loopback when absent. Giving one also answers requests for that name. */
  host?: string;
  /** 0 (the default) takes any free port. */
  port?: number;
  /** Also answer PUT and DELETE. */
  writable?: boolean;
  /** Further origins that may read (and write) across origins, e.g. `https://example.org`; `*` allows every origin. */
  origins?: string[];
}

/** A running server. */
export interface Serving {
  /** Address of the page, e.g. `http://127.0.0.1:8080/`. */
  url: string;
  /** Address the objects are below, e.g. `http://127.0.0.1:8080/tables/`. */
  tables: string;
  server: Server;
  /** Stops listening and ends open connections. */
  close(): Promise<void>;
}

const PREFIX = "/tables/";
const DECLARED = "Whetstone-Create-If-Absent";
const EXPOSED = `Accept-Ranges, Content-Encoding, Content-Length, Content-Range, Date, ETag, Last-Modified, ${DECLARED}`;
const ALLOWED_HEADERS = "Accept, Accept-Encoding, Content-Type, Depth, If-Match, If-None-Match, If-Range, Range";
const PAGE_POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
  + "connect-src *; worker-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Serves a folder; resolves when listening. */
export async function serve(options: ServeOptions): Promise<Serving> {
  const at: ObjectRoot = { root: await realpath(options.root), prefix: PREFIX, writable: options.writable === true };
  const page = options.page === undefined ? null : await realpath(options.page);
  const guard = new Guard(options.host, options.origins ?? [], at.writable);
  const server = createServer((req, res) => {
    handle(at, page, guard, req, res).catch((error: unknown) => answer(req, res, fileRefusal(error)));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port: options.port ?? 0, host: options.host ?? "127.0.0.1" }, () => { server.off("error", reject); resolve(); });
  });
  const { address, family, port } = server.address() as AddressInfo;
  const wildcard = address === "0.0.0.0" || address === "::";
  const name = wildcard ? "127.0.0.1" : family === "IPv6" ? `[${address}]` : address;
  const url = `http://${name}:${port}/`;
  const close = async (): Promise<void> => {
    await new Promise<void>((resolve) => { server.close(() => resolve()); server.closeAllConnections(); });
    await rmdir(path.join(at.root, UPLOADS)).catch(() => undefined); // absent, or an upload of another server is in it
  };
  return { url, tables: url + PREFIX.slice(1), server, close };
}

/** Who may ask: names this server answers to, and origins it shows its answers to. */
class Guard {
  readonly #host: string | undefined;
  readonly #origins: Set<string>;
  readonly methods: string;

  constructor(host: string | undefined, origins: string[], writable: boolean) {
    this.#host = host;
    this.#origins = new Set(origins);
    this.methods = writable ? "GET, HEAD, OPTIONS, PROPFIND, PUT, DELETE" : "GET, HEAD, OPTIONS, PROPFIND";
  }

  /** Against a foreign name that was made to resolve to this machine. */
  checkHost(req: IncomingMessage): void {
    if (this.#host === "0.0.0.0" || this.#host === "::") return;
    const name = hostName(`http://${req.headers.host ?? ""}`);
    if (name === null || !(isLoopback(name) || name === this.#host || name === `[${this.#host}]`)) {
      throw new Refusal(421, "this server answers to loopback names only; start it with --host to give it another");
    }
  }

  /** The origin to name in the answer; null when the request crosses no origin. */
  checkOrigin(req: IncomingMessage): string | null {
    const origin = req.headers.origin;
    if (origin === undefined || origin === `http://${req.headers.host}`) return null;
    const name = hostName(origin);
    if (this.#origins.has("*") || this.#origins.has(origin) || (name !== null && isLoopback(name))) return origin;
    throw new Refusal(403, "pages of this origin are not allowed; start the server with --origin to allow one");
  }
}

function hostName(url: string): string | null {
  try {
    return new URL(url).hostname.replace(/\.$/, "");
  } catch {
    return null;
  }
}

function isLoopback(name: string): boolean {
  return name === "localhost" || name.endsWith(".localhost") || name === "[::1]" || /^127(\.\d{1,3}){3}$/.test(name);
}

async function handle(at: ObjectRoot, page: string | null, guard: Guard, req: IncomingMessage, res: ServerResponse): Promise<void> {
  res.setHeader("X-Content-Type-Options", "nosniff");
  guard.checkHost(req);
  const origin = guard.checkOrigin(req);
  if (origin !== null) {
    res.setHeader("Access-Control-Allow-Origin", origin);
    res.setHeader("Access-Control-Expose-Headers", EXPOSED);
    res.setHeader("Vary", "Origin");
  }
  // A hard link makes the name or finds it taken: no client has to find out by racing itself.
  if (at.writable) res.setHeader(DECLARED, "atomic");
  const urlPath = (req.url ?? "/").split(/[?#]/, 1)[0] ?? "/";
  if (req.method === "OPTIONS") return preflight(guard, origin, req, res);
  if (urlPath.startsWith(PREFIX) || urlPath === PREFIX.slice(0, -1)) {
    const { segments, folder } = segmentsOf(urlPath === PREFIX.slice(0, -1) ? "/" : urlPath.slice(PREFIX.length - 1));
    return object(at, guard, segments, folder, req, res);
  }
  if (req.method !== "GET" && req.method !== "HEAD") throw new Refusal(405, "objects are below /tables/", { Allow: "GET, HEAD, OPTIONS" });
  segmentsOf(urlPath);
  if (page === null) throw new Refusal(404, urlPath === "/" ? "the page is not built; objects are below /tables/" : "no such page");
  res.setHeader("Content-Security-Policy", PAGE_POLICY);
  res.setHeader("Cross-Origin-Opener-Policy", "same-origin");
  await new Promise<void>((resolve, reject) => {
    send(req, urlPath, { root: page, index: "index.html", dotfiles: "deny", maxAge: 0 })
      .on("error", (error: { status?: number }) => reject(new Refusal(error.status ?? 500, "no such page")))
      .pipe(res);
    res.once("close", resolve);
  });
}

function object(at: ObjectRoot, guard: Guard, segments: string[], folder: boolean, req: IncomingMessage, res: ServerResponse): Promise<void> {
  switch (req.method) {
    case "GET":
    case "HEAD":
      return getObject(at, segments, folder, req, res);
    case "PROPFIND":
      return listFolder(at, segments, folder, req, res);
    case "PUT":
      if (at.writable) return putObject(at, segments, folder, req, res);
      break;
    case "DELETE":
      if (at.writable) return deleteObject(at, segments, folder, res);
      break;
  }
  const why = req.method === "PUT" || req.method === "DELETE" ? "this server was started without --writable" : "this method is not answered";
  throw new Refusal(405, why, { Allow: guard.methods });
}

function preflight(guard: Guard, origin: string | null, req: IncomingMessage, res: ServerResponse): Promise<void> {
  res.setHeader("Allow", guard.methods);
  if (origin !== null) {
    res.setHeader("Access-Control-Allow-Methods", guard.methods);
    res.setHeader("Access-Control-Allow-Headers", ALLOWED_HEADERS);
    res.setHeader("Access-Control-Max-Age", "600");
    if (req.headers["access-control-request-private-network"] === "true") res.setHeader("Access-Control-Allow-Private-Network", "true");
  }
  res.writeHead(204);
  res.end();
  return Promise.resolve();
}

function answer(req: IncomingMessage, res: ServerResponse, refusal: Refusal): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  for (const name of ["ETag", "Cache-Control", "Accept-Ranges", "Last-Modified", "Content-Length"]) res.removeHeader(name);
  const body = `${refusal.message}\n`;
  // A body that was not read cannot be skipped safely: the connection ends with the answer.
  const close = req.complete ? {} : { Connection: "close" };
  res.writeHead(refusal.status, { ...refusal.headers, ...close, "Content-Type": "text/plain; charset=utf-8", "Content-Length": Buffer.byteLength(body) });
  res.end(req.method === "HEAD" ? undefined : body);
}
