// The page for everybody: no finding of axe in any of its states, light and dark, wide and on a phone; a picture of each is kept.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { axe, LOOKS, wider } from "../support/page_axe.mjs";
import { pageOn } from "../support/page_browser.mjs";
import { copyTable, copyTagged, scratch } from "./support.mjs";

const WAIT = { timeout: 60_000 };

/** What is on screen, and what to do to get there. */
const STATES = {
  start: { query: () => "", ready: (page) => page.waitForSelector("button.sample", WAIT) },
  table: { query: (url) => `?url=${url}`, ready: (page) => page.waitForSelector(".map canvas", WAIT) },
  selected: {
    query: (url) => `?url=${url}&sel=index:k_idx&changes=on`,
    ready: async (page) => {
      await page.getByRole("button", { name: "contents", exact: true }).click(WAIT);
      await page.waitForSelector(".facts-list dt", WAIT);
      await page.waitForSelector(".change-list", WAIT);
    },
  },
  refresh: { query: (url) => `?url=${url}&refresh=k_idx&n=3`, ready: (page) => page.waitForSelector(".runs tbody tr", WAIT) },
  create: { query: (url) => `?url=${url}&create=index`, ready: (page) => page.waitForSelector(".choices select", WAIT) },
  rows: { query: (url) => `?url=${url}&view=table`, ready: (page) => page.waitForSelector(".fragment-table tbody tr", WAIT) },
  "what-if": { query: (url) => `?url=${url}&view=what-if`, ready: (page) => page.waitForSelector(".strips canvas", WAIT) },
  history: {
    query: (url) => `?url=${url.replace("fragments_200", "partially_drained")}&view=history&sel=transition:1`,
    ready: async (page) => {
      await page.waitForSelector(".history-graph", WAIT);
      await page.waitForSelector(".history-reasons p", WAIT);
    },
  },
  sql: {
    query: (url) => `?url=${url}&view=sql`,
    ready: async (page) => {
      await page.getByLabel("Statement").fill("SHOW INDEXES FROM fragments_200", WAIT);
      await page.getByLabel("Statement").press("Enter");
      await page.waitForSelector(".console tbody tr", WAIT);
    },
  },
  error: { query: (url) => `?url=${url.replace("fragments_200", "absent")}`, ready: (page) => page.waitForSelector(".error", WAIT) },
};

for (const look of LOOKS) {
  test(`${look.name}: no finding, nothing wider than the screen`, async (t) => {
    const folder = scratch(t);
    copyTable(t, "fragments_200", folder);
    copyTagged("partially_drained", folder);
    mkdirSync(path.join(folder, "samples"));
    copyTable(t, "segments_interleaved", path.join(folder, "samples"), "interleaved");
    writeFileSync(path.join(folder, "samples", "index.json"), JSON.stringify([{ name: "interleaved", title: "Taking turns", description: "Segments that take turns." }]));
    const { open, shot, table } = await pageOn(t, folder);
    for (const [state, { query, ready }] of Object.entries(STATES)) {
      const { page } = await open(query(table("fragments_200")), look);
      await ready(page);
      assert.deepEqual(await axe(page), [], `${state}`);
      assert.equal(await wider(page), 0, `${state}: nothing is wider than the screen`);
      await shot(page, `state-${state}-${look.name}`);
      await page.context().close();
    }
  });
}
