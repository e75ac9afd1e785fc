// The package inside workerd, on an R2 binding: prints the report of the conformance suite, and what a refresh there did.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [servers, table] = process.argv.slice(2);
const { Miniflare } = await import(pathToFileURL(createRequire(path.join(servers, "package.json")).resolve("miniflare")));
const dist = fileURLToPath(new URL("../../pkg/dist/", import.meta.url));

const WORKER = `
import { conformance, open, r2Store } from "./workerd.js";
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (request.method === "PUT") {
      await env.BUCKET.put(decodeURIComponent(pathname.slice(1)), await request.arrayBuffer());
      return new Response(null, { status: 201 });
    }
    try {
      if (pathname === "/check") return Response.json(await conformance(r2Store(env.BUCKET, "checks")));
      const table = await open(r2Store(env.BUCKET, "t.lance"));
      const report = await table.refresh("k_idx", { segments: 2 });
      const index = await table.index("k_idx");
      return Response.json({ report, unindexed: index.unindexed_fragments, left: (await env.BUCKET.list()).objects.map((o) => o.key).filter((key) => key.includes("check")) });
    } catch (error) {
      return Response.json({ error: { code: error.code ?? "NOT_TYPED", message: String(error.message), stack: String(error.stack) } });
    }
  },
};`;

const modules = [{ type: "ESModule", path: "main.js", contents: WORKER }];
for (const name of readdirSync(dist)) {
  if (name.endsWith(".js") && !/^(node|serve|worker-node)/.test(name)) modules.push({ type: "ESModule", path: name, contents: readFileSync(path.join(dist, name), "utf8") });
  if (name.endsWith(".wasm")) modules.push({ type: "CompiledWasm", path: name, contents: readFileSync(path.join(dist, name)) });
}
const worker = new Miniflare({ modules, r2Buckets: ["BUCKET"], compatibilityDate: "2026-01-01", host: "127.0.0.1" });
try {
  for (const name of readdirSync(table, { recursive: true })) {
    const file = path.join(table, name);
    if (statSync(file).isFile()) await worker.dispatchFetch(`http://local/${["t.lance", ...name.split("/")].map(encodeURIComponent).join("/")}`, { method: "PUT", body: readFileSync(file) });
  }
  const check = await (await worker.dispatchFetch("http://local/check")).json();
  const refresh = await (await worker.dispatchFetch("http://local/refresh")).json();
  process.stdout.write(`${JSON.stringify({ check, refresh })}\n`);
} finally {
  await worker.dispose();
}
