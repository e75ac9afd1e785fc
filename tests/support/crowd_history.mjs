// Every version of a table: its transaction, who wrote it, and per index the live fragments of each segment. crowd_history.mjs TARGET
import { open } from "../../pkg/dist/node.js";

const table = await open(process.argv[2]);
for (const { version } of await table.versions()) {
  const at = await table.at(version);
  const { indices } = await at.show();
  const segments = Object.fromEntries(indices.map((index) => [index.name, index.segments.map((s) => [s.uuid, s.effective_fragment_ids])]));
  process.stdout.write(`${JSON.stringify({ version, segments })}\n`);
  at.close();
}
table.close();
