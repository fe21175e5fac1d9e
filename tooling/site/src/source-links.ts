import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { anchorsOf, linksOf } from "./markdown.ts";
import { filesUnder, root } from "./paths.ts";

const folders = ["docs", "adr", "packages", "examples", "bench"];

/** Every link in the repository's Markdown that leads to no file, or to no heading of it. */
export async function sourceLinkProblems(): Promise<string[]> {
  const files = [
    ...["README.md", "CONTRIBUTING.md"],
    ...folders.flatMap((folder) =>
      filesUnder(join(root, folder), /\.md$/).map((file) => `${folder}/${file}`),
    ),
  ];
  const pages = new Map(files.map((file) => [file, readFileSync(join(root, file), "utf8")]));
  return [...pages].flatMap(([file, text]) => brokenLinks(file, text, pages));
}

/** Those of one page; `pages` holds the text of every page by its path. */
export function brokenLinks(
  file: string,
  text: string,
  pages: ReadonlyMap<string, string>,
  isThere: (path: string) => boolean = inRepository,
): string[] {
  return linksOf(text).flatMap(({ line, target }) => {
    const [path = "", anchor] = target.split("#");
    const found = path === "" ? file : posix.join(dirname(file), decodeURIComponent(path));
    if (!isPublishedWith(file, found))
      return [
        `${file}:${line}: ${target} is not in the published package: name the document, or link to https`,
      ];
    const page = pages.get(found);
    if (page === undefined && !isThere(found))
      return [`${file}:${line}: ${target} leads to no file (${found})`];
    if (anchor === undefined || page === undefined) return [];
    if (anchorsOf(page).has(anchor)) return [];
    return [`${file}:${line}: ${target} leads to no heading of ${found}`];
  });
}

/** A package's README is read where it is published, and there is only what its archive holds. */
function isPublishedWith(file: string, found: string): boolean {
  const [, folder] = /^(packages\/[^/]+\/)README\.md$/.exec(file) ?? [];
  if (folder === undefined) return true;
  return [file, `${folder}package.json`].includes(found) || found.startsWith(`${folder}dist/`);
}

function inRepository(path: string): boolean {
  if (path.startsWith("..")) return false;
  const full = join(root, path);
  return existsSync(full) && (statSync(full).isFile() || statSync(full).isDirectory());
}
