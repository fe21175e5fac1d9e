import { mkdirSync, mkdtempSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { copyTree } from "./binaries.ts";

const folder = mkdtempSync(join(tmpdir(), "venturi-binaries-"));

afterEach(() => rmSync(folder, { recursive: true }));

test("a copy of the programs does not lead back to where they were installed", () => {
  const installed = join(folder, "installed");
  mkdirSync(installed);
  writeFileSync(join(installed, "libicuuc.so.60.2"), "");
  symlinkSync("libicuuc.so.60.2", join(installed, "libicuuc.so.60"));
  copyTree(installed, join(folder, "copy"));
  expect(readlinkSync(join(folder, "copy", "libicuuc.so.60"))).toBe("libicuuc.so.60.2");
});
