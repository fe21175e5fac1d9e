import { readdirSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the repository. */
export const root = fileURLToPath(new URL("../../../", import.meta.url));

/** The folders of what is published, such as `packages/core`. */
export const packageFolders = readdirSync(join(root, "packages")).map((name) => `packages/${name}`);

const generated = new Set(["node_modules", "dist", "coverage", "~"]);

/** Files under a folder of the repository whose path matches, generated ones left out, sorted. */
export function filesUnder(folder: string, pattern: RegExp): string[] {
  const found: string[] = [];
  const walk = (path: string): void => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const child = join(path, entry.name);
      const hidden = entry.name.startsWith(".");
      if (entry.isDirectory() && !hidden && !generated.has(entry.name)) walk(child);
      const name = relative(root, child).split(sep).join("/");
      if (entry.isFile() && pattern.test(name)) found.push(name);
    }
  };
  walk(join(root, folder));
  return found.sort();
}
