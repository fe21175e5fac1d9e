import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import type { MemoryReport } from "./testing/child-memory.ts";

const script = fileURLToPath(new URL("./testing/child-memory.ts", import.meta.url));
const flags = [
  "--expose-gc",
  "--trace-warnings",
  "--unhandled-rejections=strict",
  "--disallow-code-generation-from-strings",
];

test.each(["claim-ahead", "claim-as-free"])(
  "a worker holds on to nothing, idle or busy, under the strictest flags and without a warning: %s",
  async (how) => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [
      ...flags,
      "--conditions=@venturi/source",
      "--import",
      "tsx",
      script,
      how,
    ]);
    expect(stderr).toBe("");
    const report: MemoryReport = JSON.parse(stdout);
    // A promise that each turn or job left behind with its reactions would be more.
    expect(report.idleGrowth / report.idleTurns).toBeLessThan(200);
    expect(report.busyGrowth / report.jobs).toBeLessThan(200);
  },
  30_000,
);
