import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";

/** A folder and its regular files, as the bytes of their names. */
export interface ListedFolder {
  /** From the directory that was listed; empty for that directory itself. */
  readonly folder: Buffer;
  readonly files: readonly Buffer[];
}

export interface Listing {
  readonly folders: readonly ListedFolder[];
  readonly fileCount: number;
  /** Folders that could not be read, with the reason. */
  readonly unread: readonly { readonly folder: Buffer; readonly reason: string }[];
}

/** The data of version control: not files of the directory, and changing all the time. */
const leftOut = new Set([".git", ".hg", ".svn", ".jj"]);

const separator = Buffer.from("/");

/**
 * Lists the regular files under a directory, as `find -type f` does: links are not followed. Left
 * out are version-control data and the data directories of PostgreSQL servers.
 */
export async function listFiles(root: Buffer, signal?: AbortSignal): Promise<Listing> {
  const folders: ListedFolder[] = [];
  const unread: { folder: Buffer; reason: string }[] = [];
  let fileCount = 0;
  const waiting: Buffer[] = [Buffer.alloc(0)];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    signal?.throwIfAborted();
    let entries: Dirent<Buffer>[];
    try {
      entries = await readdir(join(root, folder), { encoding: "buffer", withFileTypes: true });
    } catch (error) {
      // The directory itself must be there; a folder in it may have gone or be somebody else's.
      if (folder.length === 0) throw error;
      unread.push({ folder, reason: error instanceof Error ? error.message : String(error) });
      continue;
    }
    if (isDatabase(entries)) continue;
    const files = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
    fileCount += files.length;
    folders.push({ folder, files });
    for (const entry of entries) {
      if (entry.isDirectory() && !leftOut.has(entry.name.toString("latin1"))) {
        waiting.push(join(folder, entry.name));
      }
    }
  }
  return { folders, fileCount, unread };
}

/** The data directory of a PostgreSQL server: its files change with every job that is written. */
function isDatabase(entries: readonly Dirent<Buffer>[]): boolean {
  const has = (name: string) => entries.some((entry) => entry.name.equals(Buffer.from(name)));
  return has("PG_VERSION") && has("base") && has("global");
}

function join(folder: Buffer, name: Buffer): Buffer {
  if (folder.length === 0) return name;
  return name.length === 0 ? folder : Buffer.concat([folder, separator, name]);
}
