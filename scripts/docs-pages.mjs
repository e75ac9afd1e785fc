// Makes the documents readable beside the page, as www/dist/docs/NAME.html: docs/*.md, and the references that come from the code.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Marked } from "marked";
import { apiReference, commandReference, corsReference } from "./docs-references.mjs";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const OUT = path.join(ROOT, "www", "dist", "docs");
const ORDER = ["guide", "five-sets", "layout", "sandbox", "sql", "command", "api", "errors", "stores", "cors", "requests", "encodings"];
const docs = path.join(ROOT, "docs");
const texts = new Map(readdirSync(docs).filter((file) => file.endsWith(".md")).map((file) => [file.slice(0, -3), readFileSync(path.join(docs, file), "utf8")]));
texts.set("command", await commandReference());
texts.set("api", apiReference());
texts.set("cors", await corsReference());
const names = [...texts.keys()];
names.sort((a, b) => (ORDER.indexOf(a) + 1 || 99) - (ORDER.indexOf(b) + 1 || 99) || (a < b ? -1 : 1));

const slug = (text) => text.toLowerCase().replace(/<[^>]+>|&\w+;/g, "").replace(/[^\p{L}\p{N}\s_-]/gu, "").trim().replace(/\s+/g, "-");
const marked = new Marked({
  renderer: {
    heading({ tokens, depth }) {
      const text = this.parser.parseInline(tokens);
      return `<h${depth} id="${slug(text)}">${text}</h${depth}>\n`;
    },
    link({ href, tokens }) {
      const text = this.parser.parseInline(tokens);
      // Files above docs/ are not served: their names stay as text.
      if (href.startsWith("../")) return text;
      return `<a href="${href.replace(/\.md(?=$|#)/, ".html")}">${text}</a>`;
    },
    html({ text }) {
      return text.startsWith("<!--") ? "" : text;
    },
  },
});

const STYLE = `
:root { color-scheme: light dark; --ink: light-dark(#14191d, #e7eaec); --muted: light-dark(#56616b, #9aa6af); --page: light-dark(#ffffff, #101416); --line: light-dark(#d8dde1, #2b3338); --sunken: light-dark(#f4f5f5, #181d20); --accent: light-dark(#12617f, #6bb9d6); }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; font-variant-numeric: tabular-nums; display: grid; grid-template-columns: 200px minmax(0, 1fr); }
nav { padding: 24px 16px; border-right: 1px solid var(--line); position: sticky; top: 0; height: 100vh; overflow: auto; }
nav a { display: block; padding: 4px 8px; border-radius: 6px; color: var(--ink); text-decoration: none; }
nav a:first-child { margin-bottom: 16px; font-weight: 650; }
nav a[aria-current] { background: var(--sunken); color: var(--accent); font-weight: 550; }
main { padding: 24px 32px 64px; max-width: 960px; min-width: 0; }
a { color: var(--accent); }
h1 { font-size: 26px; line-height: 34px; } h2 { margin-top: 36px; font-size: 19px; } h3 { margin-top: 28px; font-size: 16px; }
pre { padding: 12px 16px; border: 1px solid var(--line); border-radius: 8px; background: var(--sunken); overflow: auto; font-size: 13px; line-height: 20px; }
:not(pre) > code { padding: 1px 4px; border-radius: 4px; background: var(--sunken); font-size: 0.92em; overflow-wrap: anywhere; }
table { display: block; max-width: 100%; overflow: auto; border-collapse: collapse; }
th, td { padding: 6px 16px 6px 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--muted); font-weight: 550; }
img { max-width: 100%; border: 1px solid var(--line); border-radius: 8px; }
@media (max-width: 720px) { body { grid-template-columns: minmax(0, 1fr); } nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line); padding: 8px; display: flex; flex-wrap: wrap; } nav a:first-child { margin: 0; width: 100%; } main { padding: 16px; } }
@media print { nav { display: none; } body { display: block; } }
`;

mkdirSync(OUT, { recursive: true });
const titles = new Map(names.map((name) => [name, /^# (.+)$/m.exec(texts.get(name))?.[1] ?? name]));
for (const name of names) {
  const body = await marked.parse(texts.get(name));
  const links = names.map((other) => `<a href="${other}.html"${other === name ? ' aria-current="page"' : ""}>${titles.get(other)}</a>`).join("");
  writeFileSync(path.join(OUT, `${name}.html`), `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${titles.get(name)} – Whetstone</title><style>${STYLE}</style></head>
<body><nav aria-label="Documents"><a href="../">← Whetstone</a>${links}</nav><main>${body}</main></body></html>
`);
}
for (const file of readdirSync(docs).filter((one) => /\.(png|svg)$/.test(one))) copyFileSync(path.join(docs, file), path.join(OUT, file));
