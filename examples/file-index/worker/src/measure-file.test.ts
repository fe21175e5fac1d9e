import { createHash } from "node:crypto";
import { appendFile, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { measureFile } from "./measure-file.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "measure-file-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const { signal } = new AbortController();

function measure(name: string, abort = signal) {
  return measureFile(Buffer.from(join(folder, name)), name, abort);
}

describe("a file", () => {
  it("that is longer than one read is hashed and counted as a whole", async () => {
    const content = "word and word\n".repeat(20_000);
    await writeFile(join(folder, "long.txt"), content);
    expect(await measure("long.txt")).toEqual({
      bytes: content.length,
      sha256: createHash("sha256").update(content).digest("hex"),
      type: "text/plain",
      lines: 20_000,
      words: 60_000,
    });
  });

  it.each([
    ["empty", "", "text/plain"],
    ["empty.json", "", "application/json"],
    ["source.ts", "export {};", "text/typescript"],
    ["page.html", "<p>", "text/html"],
    ["unknown.xyzzy", "text", "text/plain"],
    ["unknown.bin2", "a\0b", "application/octet-stream"],
    ["picture.txt", "\u0089PNG\r\n\u001a\n\0\0\0\rIHDR", "image/png"],
    ["archive", "\u001f\u008b\u0008\0\0\0\0\0", "application/gzip"],
  ])("%s has the type of its content, else of its name", async (name, content, type) => {
    await writeFile(join(folder, name), Buffer.from(content, "latin1"));
    expect(await measure(name)).toMatchObject({ type });
  });

  it("that has become a folder or a link, or has gone, is an error", async () => {
    await mkdir(join(folder, "folder"));
    await symlink(join(folder, "long.txt"), join(folder, "link"));
    await expect(measure("folder")).rejects.toThrow("it has become a folder");
    await expect(measure("link")).rejects.toMatchObject({ code: "ELOOP" });
    await expect(measure("nowhere")).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("is left when the worker stops", async () => {
    await appendFile(join(folder, "stopped"), "x");
    const reason = new Error("stopping");
    await expect(measure("stopped", AbortSignal.abort(reason))).rejects.toBe(reason);
  });
});
