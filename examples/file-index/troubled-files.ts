import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Listing, listFiles } from "@venturi-examples/file-index-producer";

/** Files that go wrong on purpose. */
export interface TroubledFiles {
  readonly root: Buffer;
  readonly listing: Listing;
  remove(): Promise<void>;
}

/**
 * Two files that are listed and then spoilt: one vanishes, one becomes a folder of the same name
 * (which nobody can read as a file, not even root). Everything else a demo shows is real; these two
 * are there to show how failures are treated.
 */
export async function makeTroubledFiles(): Promise<TroubledFiles> {
  const root = await mkdtemp(join(tmpdir(), "file-index-trouble-"));
  const vanishing = join(root, "vanishes-on-purpose.txt");
  const turning = join(root, "becomes-a-folder-on-purpose.txt");
  for (const file of [vanishing, turning]) await writeFile(file, "soon gone\n");
  const listing = await listFiles(Buffer.from(root));
  for (const file of [vanishing, turning]) await rm(file);
  await mkdir(turning);
  return {
    root: Buffer.from(root),
    listing,
    remove: () => rm(root, { recursive: true, force: true }),
  };
}
