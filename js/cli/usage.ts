// What the command understands: one table of commands and options, from which parsing and the help text both come.
import { parseArgs } from "node:util";
import { WhetstoneError } from "../errors.js";

/** A mistake in how the command was called: exit 2. */
export class UsageError extends WhetstoneError {
  constructor(message: string) {
    super("INVALID_ARGUMENT", message);
  }
}

interface Option {
  /** Name of the value; absent for a flag. */
  value?: string;
  alias?: string;
  many?: boolean;
  help: string;
}

const OPTIONS = {
  json: { help: "print one JSON document on stdout and nothing else" },
  quiet: { help: "no progress" },
  help: { help: "explain a command" },
  at: { value: "VERSION", help: "the version to look at" },
  tag: { value: "TAG", help: "the tag to look at" },
  branch: { value: "BRANCH", help: "the branch to work on" },
  store: { value: "KIND", help: "how to reach an http(s): address: s3, azure, gcs, webdav or static" },
  "other-bases": { help: "read files that the table keeps elsewhere: in other folders, or at other origins (without keys)" },
  "unsafe-commits": { help: "commit also where racing writers may overwrite each other" },
  "num-segments": { value: "N", alias: "segments", help: "build at most N segments (1)" },
  workers: { value: "K", help: "build with at most K workers (one per segment, as far as there are processors)" },
  absorb: { help: "build the fragments of existing segments anew with the rest" },
  "absorb-trailing": { help: "build the last segments anew as long as each is at most twice what is built behind it" },
  only: { value: "UUID", many: true, help: "merge this segment; repeatable, all when absent" },
  reread: { help: "read the column again even where the files of the segments would do" },
  "max-bytes": { value: "BYTES", help: "hold at most this much per build; read in passes if need be" },
  defer: { help: "leave the indexes alone and record where rows went (defer_index_remap)" },
  param: { value: "KEY=VALUE", many: true, help: "a parameter of the index method, or an option of the compaction; repeatable" },
  alias: { value: "NAME", help: "another name of the table in statements" },
  pair: { value: "A,B", help: "also say why fragments A and B are, or are not, rewritten together" },
  compare: { value: "PLAN", many: true, help: "compare this plan; repeatable, all that have a name when absent" },
  deferred: { help: "commit the definition only; a refresh indexes the rows" },
  replace: { help: "replace an index of that name on the same column" },
  "dry-run": { help: "only plan" },
  "older-than": { value: "AGE", help: "only what is older: a number with s, m, h or d (7d)" },
  remove: { help: "remove what may be removed; without it nothing is" },
  fragment: { value: "ID", help: "only rows of this fragment" },
  limit: { value: "N", help: "at most so many rows; of segments, at most so many pages, zones, keys or tokens of each (1000)" },
  offset: { value: "N", help: "leave out so many pages, zones, keys or tokens at the beginning" },
  segment: { value: "UUID", help: "only the pages, zones, keys or tokens of this segment" },
  arrow: { value: "FILE", help: "write the rows into this file, as an Arrow IPC stream" },
  sample: { value: "N", help: "look at N covered fragments only, and state the error" },
  plan: { value: "FILE", help: "run this plan (as printed by plan --json; - is stdin) instead of planning" },
  port: { value: "PORT", help: "port to listen on; 0 takes a free one (8080)" },
  host: { value: "HOST", help: "address to listen on, and name to answer to (127.0.0.1)" },
  writable: { help: "also answer PUT and DELETE" },
  origin: { value: "ORIGIN", many: true, help: "pages of this origin: let them read (serve; repeatable, * lets all), or see whether they may (store-check)" },
  quick: { help: "leave out the check that writes over a thousand objects" },
  contenders: { value: "N", help: "writers that race for one object (12)" },
  rounds: { value: "N", help: "races (20)" },
  page: { value: "DIR", help: "the built page to serve at /" },
  open: { help: "open the page in a browser" },
} as const satisfies Record<string, Option>;

type OptionName = keyof typeof OPTIONS;

const TABLE: OptionName[] = ["json", "quiet", "help", "at", "tag", "branch", "store", "other-bases"];
const COMMITTING: OptionName[] = ["dry-run", "plan", "unsafe-commits"];
const PLANNING: OptionName[] = ["num-segments", "absorb", "absorb-trailing", "max-bytes", "param"];

interface Command {
  arguments: string[];
  /** The last argument may be left out. */
  optional?: boolean;
  options: OptionName[];
  help: string;
}

/** Every command, in the order the help lists them. */
export const COMMANDS = {
  show: { arguments: ["TABLE"], options: TABLE, help: "the table at a glance, and what each index covers" },
  fragments: { arguments: ["TABLE"], options: TABLE, help: "its fragments, and which segments cover each" },
  segments: { arguments: ["TABLE", "INDEX"], optional: true, options: [...TABLE, "segment", "offset", "limit"], help: "the physical segments of its indexes; of one index also what is inside" },
  column: { arguments: ["TABLE", "PATH"], options: [...TABLE, "fragment", "limit", "arrow"], help: "the values of a column with their row addresses, one JSON object a line" },
  plan: { arguments: ["TABLE", "INDEX"], options: [...TABLE, ...PLANNING], help: "what a refresh of the index would do" },
  refresh: { arguments: ["TABLE", "INDEX"], options: [...TABLE, ...PLANNING, "workers", ...COMMITTING], help: "index the fragments the index does not cover" },
  "create-index": { arguments: ["TABLE", "NAME", "COLUMN", "METHOD"], options: [...TABLE, "num-segments", "max-bytes", "param", "deferred", "replace", "workers", ...COMMITTING], help: "make an index" },
  merge: { arguments: ["TABLE", "INDEX"], options: [...TABLE, "num-segments", "only", "reread", "max-bytes", "workers", ...COMMITTING], help: "make few segments of an index's many" },
  "drop-index": { arguments: ["TABLE", "NAME"], options: [...TABLE, ...COMMITTING], help: "take an index of any method out of the table" },
  probe: { arguments: ["TABLE", "INDEX", "OP", "VALUE"], optional: true, options: TABLE, help: "what of the table a condition has to look at" },
  audit: { arguments: ["TABLE", "INDEX"], options: [...TABLE, "sample"], help: "hold the index against its column, row by row" },
  compaction: { arguments: ["TABLE"], options: [...TABLE, "num-segments", "param", "pair", "compare"], help: "what a compaction would do, what stays frozen and why, and what other orders would give" },
  compact: { arguments: ["TABLE"], options: [...TABLE, "param", "defer", "workers", ...COMMITTING], help: "join small fragments and drop deleted rows, with the indexes carried over" },
  sql: { arguments: ["TABLE", "STATEMENT"], options: [...TABLE, "alias", "workers"], help: "answer one statement, as in: SHOW INDEXES FROM users" },
  history: { arguments: ["TABLE"], options: TABLE, help: "its fragment reuse history, and why each part is there" },
  trim: { arguments: ["TABLE"], options: [...TABLE, "dry-run"], help: "drop superseded segments, and records of the history that nobody needs" },
  prune: { arguments: ["TABLE"], options: [...TABLE, "dry-run"], help: "drop superseded segments only" },
  gc: { arguments: ["TABLE"], options: [...TABLE, "older-than", "remove"], help: "find, and with --remove remove, row maps that no version names" },
  transaction: { arguments: ["TABLE", "UUID"], options: TABLE, help: "which version a transaction became, if any" },
  discard: { arguments: ["TABLE", "REPORT.json"], options: [...TABLE, "dry-run"], help: "remove what a job staged and, as is certain, did not commit; - is stdin" },
  orphans: { arguments: ["TABLE"], options: [...TABLE, "older-than", "remove"], help: "what lies in the table's folders and no version names" },
  "store-check": { arguments: ["URL"], options: ["json", "quiet", "help", "store", "origin", "quick", "contenders", "rounds"], help: "try what a store does: ranges, listings, races, pages; and say what to change" },
  serve: { arguments: ["DIR"], options: ["json", "quiet", "help", "port", "host", "writable", "origin", "page", "open"], help: "serve a folder of tables over HTTP, and the page" },
} as const satisfies Record<string, Command>;

export type CommandName = keyof typeof COMMANDS;

/** The command line, understood. */
export interface Invocation {
  command: CommandName | null;
  arguments: string[];
  flag(name: OptionName): boolean;
  text(name: OptionName): string | undefined;
  texts(name: OptionName): string[];
  /** A whole number of at least `least`. */
  number(name: OptionName, least: number): number | undefined;
}

export function parse(argv: string[]): Invocation {
  const [name] = argv;
  if (name === undefined || name === "help" || name.startsWith("-")) {
    if (name !== undefined && name !== "help" && name !== "--help" && name !== "-h") throw new UsageError(`give the command first: whetstone ${Object.keys(COMMANDS).join(" | ")}`);
    return invocation(null, argv.slice(1), {});
  }
  if (!Object.hasOwn(COMMANDS, name)) throw new UsageError(`there is no command ${name}: the commands are ${Object.keys(COMMANDS).join(", ")}`);
  const command = COMMANDS[name as CommandName] as Command;
  const known = Object.fromEntries(command.options.flatMap((option) => {
    const { value, alias, many } = OPTIONS[option] as Option;
    const spec = { type: value === undefined ? "boolean" as const : "string" as const, ...(many ? { multiple: true } : {}), ...(option === "help" ? { short: "h" } : {}) };
    return [[option, spec], ...(alias === undefined ? [] : [[alias, spec]])];
  })) as Record<string, { type: "boolean" | "string" }>;
  const args = joinNegative(argv.slice(1), known);
  let parsed;
  try {
    parsed = parseArgs({ args, options: known, allowPositionals: true });
  } catch (error) {
    throw new UsageError(`${(error as Error).message.split(/\.\s/, 1)[0]}; whetstone ${name} --help lists the options`);
  }
  const values: Record<string, unknown> = { ...parsed.values };
  for (const option of command.options) {
    const { alias } = OPTIONS[option] as Option;
    if (alias === undefined || values[alias] === undefined) continue;
    if (values[option] !== undefined) throw new UsageError(`--${option} and --${alias} are the same option: give one`);
    values[option] = values[alias];
  }
  const most = command.arguments.length;
  const least = most - (command.optional ? 1 : 0);
  const given = parsed.positionals.length;
  if (values["help"] !== true && (given < least || given > most)) throw new UsageError(`usage: ${synopsis(name as CommandName)}`);
  return invocation(name as CommandName, parsed.positionals, values);
}

/**
 * `--at -1` as `--at=-1`: the parser would take the number for an option, and the person would not hear what is wrong with it. A number
 * that follows no such option is the last argument, the value of a probe.
 */
function joinNegative(argv: string[], known: Record<string, { type: "boolean" | "string" }>): string[] {
  const joined: string[] = [];
  const last: string[] = [];
  for (const word of argv) {
    const before = joined.at(-1);
    if (/^-\d/.test(word) && before?.startsWith("--") && !before.includes("=") && known[before.slice(2)]?.type === "string" && !joined.includes("--")) {
      joined[joined.length - 1] = `${before}=${word}`;
    } else if (/^-\d/.test(word) && !joined.includes("--")) last.push(word);
    else joined.push(word);
  }
  return last.length === 0 || joined.includes("--") ? [...joined, ...last] : [...joined, "--", ...last];
}

function invocation(command: CommandName | null, positionals: string[], values: Record<string, unknown>): Invocation {
  const text = (name: OptionName): string | undefined => values[name] as string | undefined;
  return {
    command, arguments: positionals, text,
    flag: (name) => values[name] === true,
    texts: (name) => (values[name] as string[] | undefined) ?? [],
    number: (name, least) => {
      const given = text(name);
      if (given === undefined) return undefined;
      const number = Number(given);
      const hint = name === "at" ? " (versions are counted from 1; without --at it is the latest)" : "";
      if (!/^\d+$/.test(given) || number < least) throw new UsageError(`--${name} takes a whole number of at least ${least}, not ${given === "" ? "nothing" : given}${hint}`);
      if (!Number.isSafeInteger(number)) throw new UsageError(`--${name} takes a whole number of at most ${Number.MAX_SAFE_INTEGER}, not ${given}`);
      return number;
    },
  };
}

function words(name: CommandName): string[] {
  const command = COMMANDS[name] as Command;
  const last = command.arguments.length - 1;
  return [name, ...command.arguments.map((argument, i) => (command.optional && i === last ? `[${argument}]` : argument))];
}

function synopsis(name: CommandName): string {
  return ["whetstone", ...words(name), "[options]"].join(" ");
}

/** What is written, and beside it what it means. */
function columns(rows: [string, string][]): string[] {
  const width = Math.max(...rows.map(([written]) => written.length)) + 2;
  return rows.map(([written, text]) => `  ${written.padEnd(width)}${text}`);
}

/** The help text of one command, or of all. */
export function help(name: CommandName | null): string {
  if (name === null) {
    const lines = columns((Object.keys(COMMANDS) as CommandName[]).map((c) => [words(c).join(" "), COMMANDS[c].help]));
    return ["whetstone keeps the scalar indexes of Lance tables complete, where they lie.", "", ...lines, "",
      "TABLE is a path, or a file:, http(s):, s3:, az: or gs: address. For S3 the usual AWS_… variables give keys, region and endpoint; for",
      "Azure AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_SAS_TOKEN, for Google Cloud GOOGLE_OAUTH_ACCESS_TOKEN.",
      "whetstone COMMAND --help lists the options.",
      "Exit status: 0 done, 1 failed and nothing was committed, 2 wrong usage, 3 it is not known whether a commit landed.", ""].join("\n");
  }
  const options = columns((COMMANDS[name] as Command).options.map((option) => {
    const { value, alias, help: text } = OPTIONS[option] as Option;
    return [`--${option}${value === undefined ? "" : ` ${value}`}${alias === undefined ? "" : `, --${alias}`}`, text];
  }));
  return [`${synopsis(name)}`, COMMANDS[name].help, "", ...options, ""].join("\n");
}
