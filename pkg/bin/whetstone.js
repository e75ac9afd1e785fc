#!/usr/bin/env node
import { existsSync } from "node:fs";

const entry = new URL("../dist/cli/main.js", import.meta.url);
if (existsSync(entry)) {
  const { main } = await import(entry.href);
  process.exitCode = await main(process.argv.slice(2));
} else {
  console.error("whetstone: the package is not built; in a checkout run: make build");
  process.exitCode = 1;
}
