// The references that come from the code, as Markdown: the command's from the table it parses with, the API's from the published types,
// what to paste for pages of other origins from the check of a store.
// They are made whenever the page is built and kept nowhere, so that they cannot be out of date.
import path from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const ROOT = fileURLToPath(new URL("../", import.meta.url));

/** The command reference, from the built package's parser. */
export async function commandReference() {
  const { COMMANDS, help } = await import("../pkg/dist/cli/usage.js");
  const parts = Object.keys(COMMANDS).map((name) => `## ${name}\n\n\`\`\`text\n${help(name).trimEnd()}\n\`\`\`\n`);
  return `# The command\n\n\`\`\`text\n${help(null).trimEnd()}\n\`\`\`\n\n${parts.join("\n")}`;
}

const PROVIDERS = [
  ["s3", "s3", "Amazon S3, and stores that take its command line", "Other stores that speak S3 usually take the same command with `--endpoint-url`.", "sh"],
  ["s3", "r2", "Cloudflare R2", "In the dashboard: the bucket, *Settings*, *CORS policy*.", "json"],
  ["gcs", "gcs", "Google Cloud Storage", "A file and a command:", "text"],
  ["azure", "azure", "Azure Blob Storage", "The rule is the storage account's, for all its containers:", "sh"],
  ["http", "nginx", "nginx (dav)", "In the `location` of the tables:", "nginx"],
  ["http", "apache", "Apache (mod_dav)", "In the `<Directory>` or `<Location>` of the tables:", "apache"],
];

/** What to paste so that a page of another origin may use a store, provider by provider: what `store-check` says. */
export async function corsReference() {
  const { corsRules } = await import("../pkg/dist/rules.js");
  const origin = "https://whetstone.example";
  const parts = PROVIDERS.map(([kind, where, title, said, language]) => {
    const remedy = corsRules(kind, origin).find((one) => one.where === where);
    return `## ${title}\n\n${said}\n\n\`\`\`${language}\n${remedy.paste}\n\`\`\`\n`;
  });
  return `# CORS: letting a page use a store

A browser shows a page of another origin only what the store allows. Reading needs \`GET\` with \`Range\`, and the headers below exposed; changing
a table needs \`PUT\`, and \`DELETE\` to clear away what a cancelled job uploaded. Put the page's own origin in the place of \`${origin}\`: the page
does so in the rule it shows when a store keeps it out, and \`whetstone store-check URL --origin ORIGIN\` tries the store and says what to paste.

A request that fails for CORS looks to a page like a server that is down, on purpose. If the rule is there and it still fails, open the
address in a tab of its own: a wrong name or a missing key says so there.

${parts.join("\n")}
## whetstone serve

\`whetstone serve DIR\` lets pages of this machine read, and write with \`--writable\`; \`--origin ORIGIN\` lets others in, one by one (\`*\`: all).

## Folders of this machine

A folder that is picked or dropped needs no rule: the browser asks the person.
`;
}

/** The API reference: every exported name with its documentation and its signature or members. */
export function apiReference() {
  const entry = path.join(ROOT, "js", "index.ts");
  const { options } = ts.parseJsonConfigFileContent(ts.readConfigFile(path.join(ROOT, "tsconfig.json"), ts.sys.readFile).config, ts.sys, ROOT);
  const program = ts.createProgram([entry, path.join(ROOT, "js", "whetstone.d.ts")], { ...options, noEmit: true });
  const checker = program.getTypeChecker();
  const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(entry)));
  const entries = exported.map((symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol)).filter((symbol) => symbol.declarations?.length);
  const kinds = [
    ["Functions", (d) => ts.isFunctionDeclaration(d)], ["Classes", (d) => ts.isClassDeclaration(d)],
    ["Documents and options", (d) => ts.isInterfaceDeclaration(d) || ts.isTypeAliasDeclaration(d)], ["Values", (d) => ts.isVariableDeclaration(d)],
  ];
  const said = (symbol) => ts.displayPartsToString(symbol.getDocumentationComment(checker)).trim();
  const parts = kinds.map(([title, is]) => {
    const mine = entries.filter((symbol) => is(symbol.declarations[0])).sort((a, b) => (a.name < b.name ? -1 : 1));
    if (mine.length === 0) return "";
    return `## ${title}\n\n${mine.map((symbol) => `### ${symbol.name}\n\n${said(symbol)}\n\n\`\`\`ts\n${shape(symbol)}\n\`\`\`\n`).join("\n")}`;
  });
  return `# The JavaScript API\n\n${parts.filter(Boolean).join("\n")}`;
}

/** A declaration without bodies, private members and what is internal. */
function shape(symbol) {
  const printer = ts.createPrinter({ removeComments: false });
  return symbol.declarations.filter((d) => !(ts.isFunctionDeclaration(d) && d.body && symbol.declarations.length > 1)).map((declaration) => {
    const file = declaration.getSourceFile();
    if (ts.isFunctionDeclaration(declaration)) return signature(declaration, file);
    if (ts.isClassDeclaration(declaration)) {
      const members = declaration.members.filter((member) => !hidden(member, file)).map((member) => {
        const text = ts.isMethodDeclaration(member) || ts.isConstructorDeclaration(member) || ts.isGetAccessor(member) ? signature(member, file) : `${member.getText(file).replace(/ = .*$/s, "").replace(/;$/, "")};`;
        return `${comment(member, file)}  ${text}`;
      });
      const base = declaration.heritageClauses?.map((clause) => ` ${clause.getText(file)}`).join("") ?? "";
      return `class ${symbol.name}${base} {\n${members.join("\n")}\n}`;
    }
    if (ts.isVariableDeclaration(declaration)) return `const ${symbol.name}: ${declaration.type?.getText(file) ?? "…"};`;
    return printer.printNode(ts.EmitHint.Unspecified, declaration, file).replace(/^export /, "").replace(/^\/\*\*[\s\S]*?\*\/\s*(?=(export )?(interface|type))/, "").replace(/^export /, "");
  }).join("\n");
}

function signature(node, file) {
  const end = node.body ? node.body.getStart(file) : node.end;
  return `${file.text.slice(node.getStart(file), end).trim().replace(/^export /, "").replace(/;$/, "")};`;
}

function comment(member, file) {
  const range = ts.getLeadingCommentRanges(file.text, member.getFullStart())?.at(-1);
  const text = range ? file.text.slice(range.pos, range.end) : "";
  return text.startsWith("/**") ? `  ${text.replace(/\n\s*/g, "\n   ")}\n` : "";
}

function hidden(member, file) {
  const text = comment(member, file);
  return /@internal/.test(text) || (member.name && ts.isPrivateIdentifier(member.name)) || (ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Private) !== 0;
}
