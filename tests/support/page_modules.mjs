// Compiles the page's pure modules (no DOM, no engine), so that tests can import them.
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import ts from "typescript";

const SOURCE = fileURLToPath(new URL("../../www/src/", import.meta.url));
const OUT = fileURLToPath(new URL("../artifacts/", import.meta.url));

let compiled;

/** Imports modules by their path below www/src, without ending: `await pageModules("map/axis", "lib/format")`. */
export async function pageModules(...names) {
  compiled ??= compile();
  const loaded = {};
  for (const name of names) Object.assign(loaded, await import(pathToFileURL(path.join(compiled, `${name}.js`)).href));
  return loaded;
}

function compile() {
  mkdirSync(OUT, { recursive: true });
  const out = mkdtempSync(path.join(OUT, "page-modules-"));
  process.on("exit", () => rmSync(out, { recursive: true, force: true }));
  writeFileSync(path.join(out, "package.json"), '{"type":"module"}');
  for (const folder of ["lib", "map", "engine", "jobs", "inside", "versions", "history", "lessons", "sandbox"]) {
    mkdirSync(path.join(out, folder), { recursive: true });
    for (const file of readdirSync(path.join(SOURCE, folder)).filter((f) => f.endsWith(".ts") && !["engine.worker.ts", "worker.ts"].includes(f) && !f.startsWith("use"))) {
      const { outputText } = ts.transpileModule(readFileSync(path.join(SOURCE, folder, file), "utf8"), {
        compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext }, fileName: file,
      });
      writeFileSync(path.join(out, folder, file.replace(/\.ts$/, ".js")), outputText);
    }
  }
  return out;
}
