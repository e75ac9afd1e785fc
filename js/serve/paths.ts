// From the path of a request to a file inside the root, and nothing outside it.
import { realpath } from "node:fs/promises";
import path from "node:path";

/** Uploads in progress live here, on the same file system as their targets; never listed, never served. */
export const UPLOADS = ".whetstone-uploads";

/** A request that is answered with a status and one line. */
export class Refusal extends Error {
  readonly status: number;
  readonly headers: Record<string, string>;
  constructor(status: number, message: string, headers: Record<string, string> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

/**
 * The decoded segments of a URL path. Each segment is decoded exactly once and on its own, so that no encoding of `/`, `.` or NUL
 * can mean something else to the file system than it meant here.
 */
export function segmentsOf(urlPath: string): { segments: string[]; folder: boolean } {
  if (!urlPath.startsWith("/")) throw new Refusal(400, "the path must start with a slash");
  const raw = urlPath.slice(1).split("/");
  const folder = raw[raw.length - 1] === "";
  if (folder) raw.pop();
  const segments = raw.map((text) => {
    let name: string;
    try {
      name = decodeURIComponent(text);
    } catch {
      throw new Refusal(400, "the path is not valid percent-encoded UTF-8");
    }
    if (name === "" || name === "." || name === "..") throw new Refusal(400, "empty, '.' and '..' segments are refused");
    if (name.includes("/") || name.includes("\0") || (path.sep === "\\" && /[\\:]/.test(name))) {
      throw new Refusal(400, "a segment holds a character that is no part of a name");
    }
    return name;
  });
  if (segments.includes(UPLOADS)) throw new Refusal(404, "no such object");
  return { segments, folder };
}

/** The inverse of {@link segmentsOf}. */
export function urlOf(segments: string[]): string {
  return segments.map(encodeURIComponent).join("/");
}

/** True when `file` (a real path) is `root` or lies in it. */
export function inside(root: string, file: string): boolean {
  return file === root || file.startsWith(root.endsWith(path.sep) ? root : root + path.sep);
}

/** The real path of something that exists. A link that leads out of the root is answered as if nothing were there. */
export async function resolveExisting(root: string, segments: string[]): Promise<string> {
  let real: string;
  try {
    real = await realpath(path.join(root, ...segments));
  } catch (error) {
    throw fileRefusal(error);
  }
  if (!inside(root, real) || inside(path.join(root, UPLOADS), real)) throw new Refusal(404, "no such object");
  return real;
}

/** Turns an error of the file system into an answer that names no path of this machine. */
export function fileRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  switch ((error as NodeJS.ErrnoException).code) {
    case "ENOENT":
    case "ENOTDIR":
    case "ELOOP":
      return new Refusal(404, "no such object");
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return new Refusal(403, "the file system refuses this");
    case "ENAMETOOLONG":
      return new Refusal(414, "the name is too long");
    case "EISDIR":
    case "ENOTEMPTY":
      return new Refusal(409, "this is a folder");
    case "ENOSPC":
    case "EDQUOT":
      return new Refusal(507, "out of space");
    default:
      return new Refusal(500, "the file system failed");
  }
}
