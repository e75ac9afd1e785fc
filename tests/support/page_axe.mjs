// What axe finds on a page: one line per rule that is broken, with where and why.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function axe(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.target.join(" ")} (${node.any[0]?.message ?? node.all[0]?.message ?? node.none[0]?.message ?? ""})`).join("; ")}`);
}

/** Pixels by which something is wider than the screen. */
export const wider = (page) => page.evaluate(() => Math.max(0, document.documentElement.scrollWidth - innerWidth));

/** The four ways a page is looked at: wide and on a phone, light and dark. */
export const LOOKS = [[1440, 900, false], [1440, 900, true], [390, 844, false], [390, 844, true]].map(([width, height, dark]) => ({ width, height, dark, name: `${width}-${dark ? "dark" : "light"}` }));
