import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToText } from "@venturi-examples/file-index-tasks";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Listing, listFiles } from "./list-files.ts";

let root: string;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "list-files-"));
});
afterAll(() => rm(root, { recursive: true, force: true }));

/** Makes a directory with files, and lists it. */
async function listed(name: string, files: readonly (string | Buffer)[]): Promise<Listing> {
  const directory = join(root, name);
  await mkdir(directory);
  for (const file of files) {
    const path = Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(file as string)]);
    await mkdir(path.subarray(0, path.lastIndexOf("/")), { recursive: true });
    await writeFile(path, "x");
  }
  return listFiles(Buffer.from(directory));
}

function paths({ folders }: Listing): string[] {
  return folders
    .flatMap(({ folder, files }) => files.map((file) => [folder, file].map(pathToText).join(" | ")))
    .sort();
}

it("lists regular files by folder, at any depth", async () => {
  const listing = await listed("plain", ["a", "b/c", "b/d/e"]);
  expect(paths(listing)).toEqual([" | a", "b | c", "b/d | e"]);
  expect(listing.fileCount).toBe(3);
  expect(listing.folders).toHaveLength(3);
});

it("follows no links", async () => {
  const target = join(root, "target");
  await mkdir(target);
  await writeFile(join(target, "file"), "x");
  await mkdir(join(root, "links"));
  await symlink(target, join(root, "links", "folder"));
  await symlink(join(target, "file"), join(root, "links", "file"));
  await symlink(join(root, "links"), join(root, "links", "loop"));
  const listing = await listFiles(Buffer.from(join(root, "links")));
  expect(listing.fileCount).toBe(0);
  expect(listing.folders).toHaveLength(1);
});

it("leaves out version-control data and the data of a database server", async () => {
  const listing = await listed("left-out", [
    ".git/HEAD",
    "sub/.git/HEAD",
    "sub/.gitignore",
    "data/PG_VERSION",
    "data/base/1",
    "data/global/1",
    "sources/PG_VERSION",
  ]);
  expect(paths(listing)).toEqual(["sources | PG_VERSION", "sub | .gitignore"]);
});

it.runIf(process.platform === "linux")("keeps names that are no UTF-8", async () => {
  const listing = await listed("odd", [
    Buffer.from([0x61, 0xff]),
    "new\nline",
    Buffer.from([0xed, 0xa0, 0x80]),
    Buffer.from("fold\u00e9r/ü", "latin1"),
  ]);
  expect(paths(listing)).toEqual([" | %ED%A0%80", " | a%FF", " | new%0Aline", "fold%E9r | %FC"]);
});

it("says that the directory itself is not there", async () => {
  await expect(listFiles(Buffer.from(join(root, "nowhere")))).rejects.toThrow("ENOENT");
});
