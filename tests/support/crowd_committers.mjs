// Several committers in one process, each with a handle of its own: crowd_committers.mjs TARGET SEED COMMITTERS JOBS.
// Prints one JSON line per job: what it was, and its report or its error.
import { open, WorkerPool } from "../../pkg/dist/node.js";

const [target, seed, committers, jobs] = process.argv.slice(2).map((word, i) => (i === 0 ? word : Number(word)));
const INDEXES = [["v_idx", "v", "BTREE"], ["z_idx", "v", "ZONEMAP"], ["g_idx", "g", "BITMAP"]];

/** Mulberry32: the same jobs in the same order for a seed; only who is faster differs. */
function dice(state) {
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % bound;
  };
}

const pool = new WorkerPool({ size: 1 });

async function committer(id) {
  const below = dice(seed * 1000 + id);
  const table = await again(() => open(target));
  for (let n = 0; n < jobs; n += 1) {
    const [name, column, method] = INDEXES[below(INDEXES.length)];
    const kind = ["refresh", "refresh", "refresh", "refresh", "create", "create", "merge", "drop"][below(8)];
    const segments = 1 + below(3);
    const options = { pool, segments };
    let line = { committer: id, n, kind, name };
    try {
      // Sometimes an old handle: its plan is older than what others did meanwhile.
      if (below(4) > 0) await table.reload();
      const report = kind === "refresh" ? await table.refresh(name, { ...options, absorb: ["none", "tiered"][below(2)] })
        : kind === "create" ? await table.createIndex(name, column, method, { ...options, train: below(3) > 0, replace: below(4) === 0 })
        : kind === "merge" ? await table.merge(name, options)
        : await table.dropIndex(name);
      line = { ...line, report };
    } catch (error) {
      line = { ...line, error: typeof error.toJSON === "function" ? error.toJSON() : { code: "THROWN", message: String(error.stack) } };
    }
    process.stdout.write(`${JSON.stringify(line)}\n`);
  }
  table.close();
}

async function again(what) {
  for (let n = 0; ; n += 1) {
    try { return await what(); } catch (error) { if (n === 9) throw error; }
  }
}

await Promise.all(Array.from({ length: committers }, (_, i) => committer(i)));
await pool.close();
