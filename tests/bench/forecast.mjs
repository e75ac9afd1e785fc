// forecast.mjs TABLE: times a forecast of the table in this process, beside a plain pass over the same arrays. Prints JSON.
import { open } from "../../pkg/dist/node.js";

const ms = async (work) => {
  const start = performance.now();
  const value = await work();
  return [performance.now() - start, value];
};
const best = async (work) => {
  let least = Infinity;
  for (let round = 0; round < 3; round++) least = Math.min(least, (await ms(work))[0]);
  return least;
};
const resident = () => Math.round(process.memoryUsage().rss / 1e6);

const start = resident();
const [opened, table] = await ms(() => open(process.argv[2]));
const open_mb = resident();
const [first, now] = await ms(() => table.forecast({ plans: [] }));
const one = await best(() => table.forecast({ plans: ["compact"] }));
const [all, compared] = await ms(() => table.forecast());
const after_mb = resident();
const [, { before: { columns } }] = await ms(() => table.forecast({ plans: [], columns: true }));

/** What the question costs at least: every array is read once, and neighbours are compared. */
function plain() {
  let borders = 0;
  let rows = 0;
  for (const { segment } of columns.coverage) for (let at = 1; at < segment.length; at++) borders += segment[at] === segment[at - 1] ? 0 : 1;
  for (let at = 0; at < columns.ids.length; at++) rows += columns.physical_rows[at] - columns.deleted_rows[at];
  return borders + rows;
}
const pass = await best(plain);
process.stdout.write(JSON.stringify({
  fragments: now.before.fragments, segments: now.before.segments, frozen: now.before.frozen, grouped: now.before.grouped,
  open_ms: opened, first_ms: first, compact_ms: one, all_plans_ms: all, plans: compared.plans.length, plain_ms: pass,
  start_mb: start, open_mb, after_mb,
}));
