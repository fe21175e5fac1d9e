import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hasPgBouncer } from "@venturi-tooling/postgres";
import { endCommandsWithThis, runCommand } from "./command.ts";
import { root } from "./paths.ts";
import { poolerExceptions } from "./pooler-exceptions.ts";
import type { VitestReport } from "./vitest-gate.ts";

/*
 * The postgres tests of queue, store and worker through PgBouncer in transaction mode: with LISTEN past it, then
 * polling. What cannot go through it is run past it, so that every test is run in one way or the other.
 */

const folders = ["packages/queue", "packages/store-postgres", "packages/worker"];

interface Pass {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

async function runPass(
  mode: "listen" | "poll" | "direct",
  paths: readonly string[],
): Promise<Pass> {
  const folder = await mkdtemp(join(tmpdir(), "venturi-pooled-"));
  try {
    const file = join(folder, "report.json");
    const { ok, output } = await runCommand({
      program: process.execPath,
      args: [
        join(root, "node_modules/vitest/vitest.mjs"),
        "run",
        ...paths,
        "--project=postgres",
        "--reporter=default",
        "--reporter=json",
        `--outputFile.json=${file}`,
      ],
      cwd: root,
      env: { VENTURI_POOLER: mode },
      timeoutMs: 1_800_000,
    });
    if (!ok) console.log(output);
    const report = JSON.parse(await readFile(file, "utf8")) as VitestReport;
    const { numPassedTests: passed, numFailedTests: failed, numPendingTests: skipped } = report;
    return { passed, failed: ok || failed > 0 ? failed : 1, skipped };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function main(): Promise<void> {
  if (!hasPgBouncer())
    throw new Error("PgBouncer is not installed here: run tooling/chaos/install-pgbouncer.sh");
  const listening = await runPass("listen", folders);
  console.log("through PgBouncer, listening past it:", listening);
  const polling = await runPass("poll", folders);
  console.log("through PgBouncer, polling:", polling);
  const direct = await runPass("direct", [...new Set(poolerExceptions.map(({ file }) => file))]);
  console.log("past it, what cannot go through:", { ...direct, skipped: 0 });
  const unseen = Math.abs(polling.skipped - direct.passed - direct.failed);
  if (unseen !== 0) console.log(`${unseen} tests were neither run through it nor past it`);
  const passes = [listening, polling, direct];
  const sum = (of: (pass: Pass) => number) => passes.reduce((total, pass) => total + of(pass), 0);
  const failed = sum((pass) => pass.failed) + unseen;
  console.log(`\n${sum((pass) => pass.passed)} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

endCommandsWithThis();

await main();
