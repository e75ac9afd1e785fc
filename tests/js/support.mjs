// Shared by the package's tests: fixture tables, scratch copies, the command as a child process.
import { createHash } from "node:crypto";
import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const PACKAGE = path.join(ROOT, "pkg");
const COMMAND = path.join(PACKAGE, "bin", "whetstone.js");
const ARCHIVE = path.join(ROOT, "tests", "data", "lance-fixtures.tar.xz");

function cache() {
  return process.env.WHETSTONE_CACHE || path.join(process.env.XDG_CACHE_HOME || path.join(homedir(), ".cache"), "whetstone");
}

/** The fixtures folder, unpacked once per archive. */
export function fixtures() {
  const digest = createHash("sha256").update(readFileSync(ARCHIVE)).digest("hex").slice(0, 16);
  const target = path.join(cache(), "fixtures-js", digest);
  if (!existsSync(target)) {
    mkdirSync(path.dirname(target), { recursive: true });
    const staging = mkdtempSync(`${target}-`);
    execFileSync("tar", ["-xJf", ARCHIVE, "-C", staging]);
    try {
      renameSync(staging, target);
    } catch (error) {
      if (!existsSync(target)) throw error;
      rmSync(staging, { recursive: true }); // another test process was faster
    }
  }
  return path.join(target, "fixtures");
}

/** What Lance says about a fixture table. */
export function expected(name) {
  return JSON.parse(readFileSync(path.join(fixtures(), "expected", `${name}.json`), "utf8"));
}

/** A folder of this test's own, removed when the test ends. */
export function scratch(t) {
  const folder = mkdtempSync(path.join(tmpdir(), "whetstone-test-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A writable copy of a fixture table. */
export function copyTable(t, name, folder = scratch(t), as = name) {
  const target = path.join(folder, `${as}.lance`);
  cpSync(path.join(fixtures(), "tables", `${name}.lance`), target, { recursive: true });
  return target;
}

/** The objects of a folder, for a store in memory. */
export function objectsOf(folder) {
  const objects = new Map();
  for (const name of readdirSync(folder, { recursive: true })) {
    const file = path.join(folder, name);
    if (statSync(file).isFile()) objects.set(name.split(path.sep).join("/"), new Uint8Array(readFileSync(file)));
  }
  return objects;
}

/** A writable copy of a fixture table with a fragment reuse history. */
export function copyTagged(name, folder) {
  const target = path.join(folder, `${name}.lance`);
  cpSync(path.join(fixtures(), "tagged", `${name}.lance`), target, { recursive: true });
  return target;
}

/** Runs the command; answers its exit status and output. */
export function command(args, { env = {}, input } = {}) {
  return new Promise((resolve, reject) => {
    const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(AWS_|WHETSTONE_|NODE_TEST)/.test(name)));
    const child = spawn(process.execPath, [COMMAND, ...args], { env: { ...clean, ...env }, stdio: ["pipe", "pipe", "pipe"] });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text) => { stdout += text; });
    child.stderr.setEncoding("utf8").on("data", (text) => { stderr += text; });
    child.on("error", reject);
    child.on("close", (status) => resolve({ status, stdout, stderr }));
    child.stdin.end(input ?? "");
  });
}
