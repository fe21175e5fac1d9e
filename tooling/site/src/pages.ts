import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { relink } from "./markdown.ts";
import { filesUnder, root, site, staging } from "./paths.ts";

const schemaFile = "packages/store-postgres/schema.sql";

/** Puts together what the site is made from: the pages of the repository under the addresses that they get. */
export function assemblePages(): void {
  rmSync(staging, { recursive: true, force: true });
  const sources = siteSources();
  for (const [source, page] of sources) {
    if (!page.endsWith(".md")) continue;
    const text = readFileSync(join(root, source), "utf8");
    write(page, source === schemaFile ? schemaPage(text) : relinked(source, text, sources));
  }
  cpSync(join(site, "pages"), staging, { recursive: true });
  for (const file of assets())
    cpSync(join(root, "docs", file), join(staging, "public", file), { recursive: true });
}

/** Plots, results and the like. */
function assets(): string[] {
  return filesUnder(join(root, "docs"), /\.(?!md$)[^.]+$/);
}

/** Which file of the repository becomes which page. */
function siteSources(): Map<string, string> {
  const sources = new Map([[schemaFile, "operations/schema.md"]]);
  for (const file of filesUnder(join(root, "docs"), /\.md$/))
    sources.set(`docs/${file}`, file.replace(/README\.md$/, "index.md"));
  for (const file of assets()) sources.set(`docs/${file}`, file);
  for (const file of filesUnder(join(root, "adr"), /\.md$/))
    sources.set(`adr/${file}`, `decisions/${file.replace("README.md", "index.md")}`);
  for (const folder of ["packages", "examples"])
    for (const file of filesUnder(join(root, folder), /^README\.md$/)) {
      const name = dirname(file);
      sources.set(`${folder}/${file}`, `${folder}/${name}.md`);
    }
  return sources;
}

function relinked(source: string, text: string, sources: ReadonlyMap<string, string>): string {
  return relink(text, (target) => {
    const [path = "", anchor] = target.split("#");
    if (path === "") return target;
    const found = posix.join(dirname(source), path);
    if (found === "README.md") return "/";
    const page = sources.get(found) ?? sources.get(posix.join(found, "README.md"));
    if (page === undefined) return undefined;
    return `/${page}${anchor === undefined ? "" : `#${anchor}`}`;
  });
}

function schemaPage(sql: string): string {
  return [
    "# The schema",
    "What the migrations leave, under the default names. Names follow the prefix and the schema that you choose.",
    `\`\`\`\`sql\n${sql.trim()}\n\`\`\`\`\n`,
  ].join("\n\n");
}

function write(page: string, text: string): void {
  const file = join(staging, page);
  if (existsSync(file)) throw new Error(`two files become the page ${page}`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
