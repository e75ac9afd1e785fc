// Time to decode one column of tables in wasm, through the package: `node decode.mjs ROUNDS FOLDER…` prints folder → seconds, rows, bytes.
import { open } from "../../pkg/dist/node.js";

const [rounds, ...folders] = process.argv.slice(2);
/** Best of the rounds. */
async function timed(table) {
  let best = Infinity;
  let read;
  for (let i = 0; i < Number(rounds); i += 1) {
    const start = performance.now();
    read = await table.countColumn("v");
    best = Math.min(best, (performance.now() - start) / 1000);
  }
  return { seconds: best, ...read };
}

const answer = {};
for (const folder of folders) {
  const table = await open(folder);
  answer[folder] = await timed(table).catch((error) => ({ refused: error.code }));
  table.close();
}
process.stdout.write(JSON.stringify(answer));
