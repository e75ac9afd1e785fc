// The object endpoint: GET and HEAD with ranges, depth-1 PROPFIND, and, when writable, PUT and DELETE.
import { createHash, randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { link, lstat, mkdir, open, readdir, realpath, rename, rmdir, stat, unlink } from "node:fs/promises";
import type { BigIntStats } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import send from "send";
import { fileRefusal, inside, Refusal, resolveExisting, UPLOADS, urlOf } from "./paths.js";

/** Where objects live and whether they may be changed. */
export interface ObjectRoot {
  /** Real path of the folder. */
  root: string;
  /** URL path the folder is served under, with a slash at both ends. */
  prefix: string;
  writable: boolean;
}

type Segments = string[];

function etagOf(stats: BigIntStats): string {
  // Strong: another content under the same name comes as another file (every PUT makes one), at another time, or with another size.
  const seen = `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}`;
  return `"${createHash("sha256").update(seen).digest("base64url").slice(0, 22)}"`;
}

/** GET and HEAD of one object; ranges and conditions are `send`'s. */
export async function getObject(at: ObjectRoot, segments: Segments, folder: boolean, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const file = await resolveExisting(at.root, segments);
  const stats = await stat(file, { bigint: true }).catch((error: unknown) => { throw fileRefusal(error); });
  if (folder || !stats.isFile()) throw new Refusal(404, "this is a folder: list it with PROPFIND");
  res.setHeader("ETag", etagOf(stats));
  // Objects are data, whatever they contain: never a document that could run in the page's origin.
  res.setHeader("Content-Type", file.endsWith(".json") ? "application/json" : "application/octet-stream");
  res.setHeader("Cache-Control", "no-cache");
  const relative = path.relative(at.root, file).split(path.sep);
  await new Promise<void>((resolve, reject) => {
    send(req, `/${urlOf(relative)}`, { root: at.root, dotfiles: "allow", index: false, cacheControl: false })
      .on("error", (error: NodeJS.ErrnoException & { status?: number }) => {
        const status = error.status ?? 500;
        if (status !== 416) reject(new Refusal(status, status === 404 ? "no such object" : "cannot be served"));
        else reject(new Refusal(416, "the range lies beyond the end", { "Content-Range": `bytes */${stats.size}` }));
      })
      .on("directory", () => reject(new Refusal(404, "this is a folder")))
      .pipe(res);
    res.once("close", resolve);
  });
}

interface Listed { segments: Segments; stats: BigIntStats }

const escapeXml = (text: string): string => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

function propstat(prefix: string, { segments, stats }: Listed): string {
  const folder = stats.isDirectory();
  const href = escapeXml(prefix + urlOf(segments) + (folder && segments.length > 0 ? "/" : ""));
  const kind = folder ? "<D:resourcetype><D:collection/></D:resourcetype>"
    : `<D:resourcetype/><D:getcontentlength>${stats.size}</D:getcontentlength><D:getetag>${escapeXml(etagOf(stats))}</D:getetag>`;
  return `<D:response><D:href>${href}</D:href><D:propstat><D:prop>${kind}<D:getlastmodified>${stats.mtime.toUTCString()}</D:getlastmodified>`
    + `</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>`;
}

/** PROPFIND: the folder and what is directly in it. Links out of the root and uploads in progress are not there. */
export async function listFolder(at: ObjectRoot, segments: Segments, folder: boolean, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const depth = req.headers.depth ?? "infinity";
  if (depth !== "0" && depth !== "1") throw new Refusal(403, "only Depth: 0 and Depth: 1 are answered");
  const target = await resolveExisting(at.root, segments);
  const own = await stat(target, { bigint: true }).catch((error: unknown) => { throw fileRefusal(error); });
  if (folder && !own.isDirectory()) throw new Refusal(404, "no such folder");
  const found: Listed[] = [{ segments, stats: own }];
  if (depth === "1" && own.isDirectory()) {
    for (const name of (await readdir(target)).sort()) {
      if (name === UPLOADS) continue;
      const stats = await statInside(at.root, path.join(target, name));
      if (stats?.isFile() || stats?.isDirectory()) found.push({ segments: [...segments, name], stats });
    }
  }
  const body = `<?xml version="1.0" encoding="utf-8"?>\n<D:multistatus xmlns:D="DAV:">${found.map((f) => propstat(at.prefix, f)).join("\n")}</D:multistatus>\n`;
  res.writeHead(207, { "Content-Type": "application/xml; charset=utf-8", "Content-Length": Buffer.byteLength(body), "Cache-Control": "no-store" });
  res.end(body);
}

async function statInside(root: string, file: string): Promise<BigIntStats | null> {
  try {
    const own = await lstat(file, { bigint: true });
    if (!own.isSymbolicLink()) return own;
    const real = await realpath(file);
    return inside(root, real) ? await stat(real, { bigint: true }) : null;
  } catch {
    return null; // gone between the listing and now, or a link to nothing
  }
}

/** Makes the folders of an object one by one, so that no link on the way can lead out of the root. */
async function makeFolders(root: string, segments: Segments): Promise<string> {
  let real = root;
  for (const name of segments) {
    const next = path.join(real, name);
    try {
      await mkdir(next);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    real = await realpath(next);
    if (!inside(root, real)) throw new Refusal(403, "the folder is a link that leads out of the served folder");
    if (!(await stat(real)).isDirectory()) throw new Refusal(409, "a part of the path is a file");
  }
  return real;
}

/** PUT: the whole body first goes to a file of its own, then appears under its name in one step; a broken upload leaves nothing. */
export async function putObject(at: ObjectRoot, segments: Segments, folder: boolean, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const name = segments[segments.length - 1];
  if (folder || name === undefined) throw new Refusal(409, "a folder cannot be written");
  const condition = req.headers["if-none-match"];
  if (condition !== undefined && condition.trim() !== "*") throw new Refusal(501, "of If-None-Match only '*' is understood on a PUT");
  if (req.headers["if-match"] !== undefined) throw new Refusal(501, "If-Match is not understood on a PUT");
  if (req.headers["content-range"] !== undefined) throw new Refusal(400, "a part of an object cannot be written");
  if (req.headers["content-encoding"] !== undefined && req.headers["content-encoding"] !== "identity") {
    throw new Refusal(415, "an encoded body is refused: an object is stored as it is read");
  }
  const uploads = path.join(at.root, UPLOADS);
  const temporary = path.join(uploads, randomUUID());
  try {
    await mkdir(uploads, { recursive: true });
    await pipeline(req, createWriteStream(temporary, { flags: "wx" }));
    const handle = await open(temporary, "r+");
    await handle.datasync().finally(() => handle.close());
    const created = await publish(at.root, segments.slice(0, -1), name, temporary, condition !== undefined);
    res.writeHead(created ? 201 : 204, { ETag: etagOf(await stat(temporary, { bigint: true })) });
    res.end();
  } catch (error) {
    throw req.destroyed && !req.complete ? new Refusal(400, "the upload broke off") : fileRefusal(error);
  } finally {
    await unlink(temporary).catch(() => undefined);
  }
}

/** True when the object is new. A hard link either makes the name or finds it taken, whoever else is trying. */
async function publish(root: string, parents: Segments, name: string, temporary: string, exclusive: boolean): Promise<boolean> {
  for (let attempt = 0; ; attempt += 1) {
    const target = path.join(await makeFolders(root, parents), name);
    try {
      await link(temporary, target);
      return true;
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === "ENOENT" && attempt < 8) continue; // a DELETE took the emptied folder away
      if (code !== "EEXIST") throw error;
      if (exclusive) throw new Refusal(412, "the object exists");
    }
    if ((await lstat(target)).isDirectory()) throw new Refusal(409, "this is a folder");
    const second = `${temporary}.2`;
    await link(temporary, second);
    await rename(second, target);
    return false;
  }
}

/** DELETE of one object, and of the folders it leaves empty: an object store has no folders. */
export async function deleteObject(at: ObjectRoot, segments: Segments, folder: boolean, res: ServerResponse): Promise<void> {
  const name = segments[segments.length - 1];
  if (folder || name === undefined) throw new Refusal(409, "a folder cannot be deleted");
  const parent = await resolveExisting(at.root, segments.slice(0, -1));
  try {
    if ((await lstat(path.join(parent, name))).isDirectory()) throw new Refusal(409, "this is a folder");
    await unlink(path.join(parent, name));
  } catch (error) {
    throw fileRefusal(error);
  }
  for (let emptied = parent; emptied !== at.root && inside(at.root, emptied); emptied = path.dirname(emptied)) {
    const gone = await rmdir(emptied).then(() => true, () => false);
    if (!gone) break;
  }
  res.writeHead(204);
  res.end();
}
