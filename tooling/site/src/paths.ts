import { readdirSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the repository. */
export const root = fileURLToPath(new URL("../../../", import.meta.url));

/** The folder of this package, which VitePress takes for its root. */
export const site = fileURLToPath(new URL("../", import.meta.url));

/** Where the pages are put together. */
export const staging = join(site, ".pages");

/** Where the site is written. */
export const output = join(site, "dist");

/** Files under a folder whose name matches, as paths from that folder, sorted. */
export function filesUnder(folder: string, pattern: RegExp): string[] {
  const walk = (path: string): string[] =>
    readdirSync(path, { withFileTypes: true }).flatMap((entry) => {
      const child = join(path, entry.name);
      if (entry.isDirectory()) return entry.name === "node_modules" ? [] : walk(child);
      return pattern.test(entry.name) ? [relative(folder, child).split(sep).join("/")] : [];
    });
  return walk(folder).sort();
}
