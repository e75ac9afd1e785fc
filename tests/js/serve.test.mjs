// `whetstone serve`: what it answers, and what it refuses.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import path from "node:path";
import test from "node:test";
import { serve } from "whetstone/serve";
import { scratch } from "./support.mjs";

async function started(t, options = {}, fill = () => undefined) {
  const folder = scratch(t);
  const root = path.join(folder, "root");
  mkdirSync(root);
  fill(root, folder);
  const serving = await serve({ root, ...options });
  t.after(() => serving.close());
  return { ...serving, root, port: new URL(serving.url).port };
}

/** A request whose path is sent as it is written: fetch would tidy it. */
function raw(port, target, { method = "GET", headers = {}, body } = {}) {
  return new Promise((resolve, reject) => {
    const req = request({ host: "127.0.0.1", port, path: target, method, headers }, (res) => {
      const chunks = [];
      res.on("data", (chunk) => chunks.push(chunk));
      res.on("end", () => resolve({ status: res.statusCode, headers: res.headers, text: Buffer.concat(chunks).toString() }));
    });
    req.on("error", reject);
    req.end(body);
  });
}

const put = (url, body, headers = {}) => fetch(url, { method: "PUT", body, headers });

test("ranges", async (t) => {
  const { tables, port } = await started(t, {}, (root) => writeFileSync(path.join(root, "ten"), "0123456789"));
  const get = (range) => fetch(`${tables}ten`, { headers: range ? { Range: range } : {} });
  const whole = await get();
  assert.equal(whole.status, 200);
  assert.equal(whole.headers.get("content-length"), "10");
  assert.equal(whole.headers.get("content-type"), "application/octet-stream");
  assert.match(whole.headers.get("etag"), /^"[^"]+"$/, "a strong ETag");
  const part = await get("bytes=2-4");
  assert.equal(part.status, 206);
  assert.equal(part.headers.get("content-range"), "bytes 2-4/10");
  assert.equal(await part.text(), "234");
  assert.equal(await (await get("bytes=8-99")).text(), "89");
  const beyond = await get("bytes=10-12");
  assert.equal(beyond.status, 416);
  assert.equal(beyond.headers.get("content-range"), "bytes */10");
  const head = await fetch(`${tables}ten`, { method: "HEAD" });
  assert.equal(head.headers.get("content-length"), "10");
  // Node's fetch adds "no-cache" to a conditional request, which asks for the whole.
  assert.equal((await raw(port, "/tables/ten", { headers: { "If-None-Match": whole.headers.get("etag") } })).status, 304);
  assert.equal((await fetch(`${tables}none`)).status, 404);
});

test("a listing names everything once, and hides what is not there", async (t) => {
  const { tables } = await started(t, {}, (root, folder) => {
    mkdirSync(path.join(root, "t.lance/_versions"), { recursive: true });
    writeFileSync(path.join(root, "t.lance/_versions/a é+%&<.manifest"), "abc");
    writeFileSync(path.join(root, "t.lance/_versions/.hidden"), "");
    mkdirSync(path.join(root, "t.lance/_versions/sub"));
    writeFileSync(path.join(folder, "secret"), "no");
    symlinkSync(path.join(folder, "secret"), path.join(root, "t.lance/_versions/link"));
  });
  const ask = (name, depth) => fetch(tables + name, { method: "PROPFIND", headers: depth === undefined ? {} : { Depth: depth } });
  const answer = await ask("t.lance/_versions", "1");
  assert.equal(answer.status, 207);
  const text = await answer.text();
  const hrefs = [...text.matchAll(/<D:href>([^<]*)<\/D:href>/g)].map(([, href]) => decodeURIComponent(href));
  assert.deepEqual(hrefs, ["/tables/t.lance/_versions/", "/tables/t.lance/_versions/.hidden", "/tables/t.lance/_versions/a é+%&<.manifest", "/tables/t.lance/_versions/sub/"]);
  assert.match(text, /<D:getcontentlength>3<\/D:getcontentlength>/);
  assert.equal((await ask("t.lance/none", "1")).status, 404);
  assert.equal((await ask("", "infinity")).status, 403);
  assert.equal((await ask("")).status, 403, "no Depth means infinity");
  assert.doesNotMatch(await (await ask("t.lance/_versions", "0")).text(), /manifest/);
});

test("nothing outside the folder is reached", async (t) => {
  const { port, root } = await started(t, { writable: true }, (root, folder) => {
    writeFileSync(path.join(folder, "secret"), "secret");
    writeFileSync(path.join(root, "ok"), "ok");
    mkdirSync(path.join(folder, "outside"));
    writeFileSync(path.join(folder, "outside/secret"), "secret");
    symlinkSync(path.join(folder, "outside"), path.join(root, "out"));
    symlinkSync(path.join(folder, "secret"), path.join(root, "file"));
    symlinkSync("loop", path.join(root, "loop"));
    symlinkSync("ok", path.join(root, "inner"));
  });
  const bad = [
    "/tables/../secret", "/tables/%2e%2e/secret", "/tables/..%2fsecret", "/tables/%2e%2e%2fsecret", "/tables/.%2e/secret", "/tables//../secret",
    "/tables/ok/../../secret", "/tables/%252e%252e/secret", "/tables/..\\secret", "/tables/out/secret", "/tables/file", "/tables/loop", "/tables/ok%00",
    "/tables/%00", "/tables/%ff", "/tables/%", "/tables/.", "/tables/./ok", "/secret", "/../secret", "http://127.0.0.1/tables/../secret", "/tables/ok/",
  ];
  for (const target of bad) {
    for (const method of ["GET", "HEAD", "PROPFIND", "PUT", "DELETE"]) {
      const answer = await raw(port, target, { method, headers: { Depth: "1" }, body: method === "PUT" ? "x" : undefined });
      const created = method === "PUT" && answer.status < 300;
      // A name that is merely odd may be written inside; what matters is where it went.
      if (created) assert.ok(["/tables/%252e%252e/secret", "/tables/..\\secret", "/tables/file", "/tables/loop"].includes(target), `${method} ${target}: ${answer.status}`);
      else if (!(method === "DELETE" && answer.status === 204)) assert.ok(answer.status >= 400, `${method} ${target}: ${answer.status}`);
      assert.doesNotMatch(answer.text, /secret\n?$|\/tmp|whetstone-test/, `${method} ${target}`);
    }
  }
  assert.equal(readFileSync(path.join(root, "../secret"), "utf8"), "secret");
  assert.deepEqual(readdirSync(path.join(root, "../outside")), ["secret"]);
  assert.equal((await raw(port, "/tables/inner")).text, "ok", "a link that stays inside is followed");
});

test("uploads in progress are nobody's business", async (t) => {
  const { port } = await started(t, { writable: true });
  for (const method of ["GET", "PUT", "PROPFIND", "DELETE"]) {
    assert.equal((await raw(port, "/tables/.whetstone-uploads/x", { method, headers: { Depth: "1" } })).status, 404);
  }
});

test("only loopback names are answered", async (t) => {
  const { port } = await started(t, {}, (root) => writeFileSync(path.join(root, "x"), "x"));
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`, "localhost", "LOCALHOST.", "tables.localhost:1"]) {
    assert.equal((await raw(port, "/tables/x", { headers: { Host: host } })).status, 200, host);
  }
  for (const host of ["example.org", `example.org:${port}`, "127.0.0.1.example.org", "localhost.example.org", "1270.0.0.1", "a b", "127.0.0.1@example.org"]) {
    assert.equal((await raw(port, "/tables/x", { headers: { Host: host } })).status, 421, JSON.stringify(host));
  }
  const named = await serve({ root: scratch(t), host: "0.0.0.0" });
  t.after(() => named.close());
  assert.equal((await raw(new URL(named.url).port, "/tables/x", { headers: { Host: "example.org" } })).status, 404);
});

test("across origins: loopback pages may, others may not", async (t) => {
  const { tables } = await started(t, { writable: true, origins: ["https://allowed.example"] }, (root) => writeFileSync(path.join(root, "x"), "x"));
  for (const origin of ["http://localhost:3000", "http://127.0.0.1:1", "https://allowed.example"]) {
    const answer = await fetch(`${tables}x`, { headers: { Origin: origin, Range: "bytes=0-0" } });
    assert.equal(answer.status, 206);
    assert.equal(answer.headers.get("access-control-allow-origin"), origin);
    for (const name of ["Content-Range", "Content-Length", "ETag"]) assert.ok(answer.headers.get("access-control-expose-headers").includes(name));
    const preflight = await fetch(`${tables}y`, {
      method: "OPTIONS", headers: { Origin: origin, "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "if-none-match" },
    });
    assert.equal(preflight.status, 204);
    for (const name of ["Range", "If-None-Match", "Depth"]) assert.ok(preflight.headers.get("access-control-allow-headers").includes(name), name);
    for (const method of ["PROPFIND", "PUT", "DELETE"]) assert.ok(preflight.headers.get("access-control-allow-methods").includes(method), method);
    assert.equal((await fetch(`${tables}none`, { headers: { Origin: origin } })).headers.get("access-control-allow-origin"), origin, "errors can be read too");
  }
  for (const origin of ["https://evil.example", "null", "http://localhost.evil.example", "http://127.0.0.1.evil.example"]) {
    for (const method of ["GET", "PUT", "DELETE", "OPTIONS"]) {
      const answer = await fetch(`${tables}x`, { method, headers: { Origin: origin }, ...(method === "PUT" ? { body: "evil" } : {}) });
      assert.equal(answer.status, 403, `${method} from ${origin}`);
      assert.equal(answer.headers.get("access-control-allow-origin"), null);
    }
  }
  assert.equal(await (await fetch(`${tables}x`)).text(), "x");
});

test("without --writable nothing is written", async (t) => {
  const { tables, root } = await started(t, {}, (root) => writeFileSync(path.join(root, "x"), "x"));
  assert.equal((await put(`${tables}y`, "y")).status, 405);
  assert.equal((await fetch(`${tables}x`, { method: "DELETE" })).status, 405);
  assert.equal((await fetch(`${tables}x`, { method: "POST", body: "" })).status, 405);
  assert.deepEqual(readdirSync(root), ["x"]);
});

test("of twelve that create the same object one wins", async (t) => {
  const { tables, root } = await started(t, { writable: true });
  for (let round = 0; round < 20; round += 1) {
    const name = `t.lance/_versions/${round}.manifest`;
    const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => put(tables + name, `from ${i}`.repeat(2000), { "If-None-Match": "*" })));
    const statuses = answers.map((answer) => answer.status);
    assert.equal(statuses.filter((status) => status === 201).length, 1, `round ${round}: ${statuses}`);
    assert.equal(statuses.filter((status) => status === 412).length, 11);
    assert.equal(readFileSync(path.join(root, name), "utf8"), `from ${statuses.indexOf(201)}`.repeat(2000));
  }
  assert.deepEqual(readdirSync(path.join(root, ".whetstone-uploads")), []);
});

test("two servers on one folder agree on the winner", async (t) => {
  const { tables, root } = await started(t, { writable: true });
  const other = await serve({ root, writable: true });
  t.after(() => other.close());
  for (let round = 0; round < 10; round += 1) {
    const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => put(`${i % 2 ? tables : other.tables}v/${round}`, `${i}`, { "If-None-Match": "*" })));
    assert.equal(answers.filter((answer) => answer.status === 201).length, 1);
  }
});

test("a PUT replaces whole, a DELETE leaves no empty folders", async (t) => {
  const { tables, root } = await started(t, { writable: true });
  assert.equal((await put(`${tables}a/b/c`, "1")).status, 201);
  assert.equal((await put(`${tables}a/b/c`, "22")).status, 204);
  assert.equal(readFileSync(path.join(root, "a/b/c"), "utf8"), "22");
  assert.equal((await put(`${tables}a/b`, "x")).status, 409, "a folder");
  assert.equal((await put(`${tables}a/b/c/d`, "x")).status, 409, "below a file");
  assert.equal((await put(`${tables}a/b/e`, "x", { "If-None-Match": '"tag"' })).status, 501);
  assert.equal((await put(`${tables}a/b/e`, "x", { "If-Match": '"tag"' })).status, 501);
  assert.equal((await put(`${tables}a/b/e`, "x", { "Content-Range": "bytes 0-0/2" })).status, 400);
  assert.equal((await put(`${tables}a/b/e`, "x", { "Content-Encoding": "gzip" })).status, 415);
  assert.equal((await fetch(`${tables}a/b`, { method: "DELETE" })).status, 409);
  assert.equal((await fetch(`${tables}a/b/c`, { method: "DELETE" })).status, 204);
  assert.equal((await fetch(`${tables}a/b/c`, { method: "DELETE" })).status, 404);
  assert.ok(!existsSync(path.join(root, "a")));
});

test("an upload that breaks off leaves nothing", async (t) => {
  const { port, root } = await started(t, { writable: true });
  await new Promise((resolve) => {
    const socket = connect(Number(port), "127.0.0.1", () => {
      socket.write(`PUT /tables/half HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Length: 1000\r\n\r\nhalf`);
      setTimeout(() => { socket.destroy(); resolve(); }, 100);
    });
  });
  const uploads = path.join(root, ".whetstone-uploads");
  for (let i = 0; i < 50 && existsSync(uploads) && readdirSync(uploads).length > 0; i += 1) await new Promise((r) => setTimeout(r, 20));
  assert.deepEqual(readdirSync(root).filter((name) => name !== ".whetstone-uploads"), []);
  assert.deepEqual(existsSync(uploads) ? readdirSync(uploads) : [], []);
});

test("the page is served at the root, with its policy", async (t) => {
  const folder = scratch(t);
  mkdirSync(path.join(folder, "page"));
  writeFileSync(path.join(folder, "page/index.html"), "<title>page</title>");
  writeFileSync(path.join(folder, "page/x.wasm"), "");
  writeFileSync(path.join(folder, "outside"), "secret");
  const { url, port } = await started(t, { page: path.join(folder, "page") });
  const page = await fetch(url);
  assert.equal(await page.text(), "<title>page</title>");
  assert.match(page.headers.get("content-security-policy"), /'wasm-unsafe-eval'/);
  assert.equal((await fetch(`${url}x.wasm`)).headers.get("content-type"), "application/wasm");
  for (const target of ["/../outside", "/%2e%2e/outside", "/..%2foutside"]) assert.ok((await raw(port, target)).status >= 400, target);
  assert.equal((await fetch(url, { method: "POST", body: "" })).status, 405);
});
