// Refreshes indexes of a table whose files lie in other places: refresh_with_bases.mjs TARGET BASES INDEX…. Prints the reports.
import { open } from "../../pkg/dist/node.js";

const [target, bases, ...indexes] = process.argv.slice(2);
const table = await open(target, { store: { bases: JSON.parse(bases) } });
const reports = [];
for (const index of indexes) reports.push(await table.refresh(index));
process.stdout.write(JSON.stringify(reports));
table.close();
