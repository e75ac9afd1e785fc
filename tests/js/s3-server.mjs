// A small S3 over a folder, for tests that need to see or refuse requests: listings, ranges, conditional writes, deletion.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";

/** Answers requests below `/bkt/`; `refuse(request)` may give `[status, code]` first. */
export function bucket(folder, refuse = () => null) {
  return (request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => answer(folder, refuse, request, Buffer.concat(chunks), response));
  };
}

function answer(folder, refuse, request, body, response) {
  const { pathname, searchParams } = new URL(request.url, "http://host");
  const end = (status, text = "", headers = {}) => response.writeHead(status, { "Content-Length": Buffer.byteLength(text), ...headers }).end(text);
  const refused = refuse(request);
  if (refused !== null) return end(refused[0], `<Error><Code>${refused[1]}</Code></Error>`);
  const key = decodeURIComponent(pathname).replace(/^\/bkt\/?/, "");
  if (searchParams.get("list-type") === "2") {
    const prefix = searchParams.get("prefix");
    const at = path.join(folder, prefix);
    const names = existsSync(at) ? readdirSync(at).filter((name) => statSync(path.join(at, name)).isFile()).sort() : [];
    const rows = names.map((name) => `<Contents><Key>${prefix}${name}</Key><LastModified>2026-11-30T01:02:03.000Z</LastModified><ETag>"x"</ETag><Size>${statSync(path.join(at, name)).size}</Size></Contents>`);
    return end(200, `<ListBucketResult><Name>bkt</Name><IsTruncated>false</IsTruncated>${rows.join("")}</ListBucketResult>`, { "Content-Type": "application/xml" });
  }
  const file = path.join(folder, key);
  const there = existsSync(file) && statSync(file).isFile();
  if (request.method === "PUT") {
    if (request.headers["if-none-match"] === "*" && there) return end(412, "<Error><Code>PreconditionFailed</Code></Error>");
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, body);
    return end(200, "", { ETag: '"x"' });
  }
  if (request.method === "DELETE") {
    if (there) rmSync(file);
    return end(204);
  }
  if (!there) return end(404, "<Error><Code>NoSuchKey</Code></Error>");
  const data = readFileSync(file);
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "");
  if (range === null) return response.writeHead(200, { "Content-Length": data.length }).end(data);
  const [first, last] = [Number(range[1]), Math.min(Number(range[2]), data.length - 1)];
  if (first >= data.length) return end(416);
  const part = data.subarray(first, last + 1);
  return response.writeHead(206, { "Content-Length": part.length, "Content-Range": `bytes ${first}-${last}/${data.length}` }).end(part);
}

/** The bucket at an address of its own; ends with the test. */
export async function listen(t, folder, refuse) {
  const server = createServer(bucket(folder, refuse));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => { server.close(); server.closeAllConnections(); });
  return `http://127.0.0.1:${server.address().port}`;
}
