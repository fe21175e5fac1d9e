import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runCommand } from "./command.ts";
import { FAILURES_FILE } from "./failures-reporter.ts";
import type { Gate, GateResult } from "./gate.ts";
import { nodeWarnings, strictNode } from "./node-warnings.ts";
import { root } from "./paths.ts";

export const vitestProgram = join(root, "node_modules/vitest/vitest.mjs");
export const reporterFile = fileURLToPath(new URL("./failures-reporter.ts", import.meta.url));

/** Which tests are run, and how. */
export interface VitestGateOptions {
  readonly project: "unit" | "postgres" | "types";
  /** The Node that runs them. @defaultValue the one that runs this */
  readonly node?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Only the tests in these folders. @defaultValue all */
  readonly folders?: readonly string[];
}

/** The part of Vitest's JSON report that is counted. */
export interface VitestReport {
  readonly success: boolean;
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
}

/** A gate that runs a Vitest project and counts its tests. */
export function vitestGate(name: string, options: VitestGateOptions): Gate {
  return {
    name,
    run: async () => {
      const folder = await mkdtemp(join(tmpdir(), "venturi-report-"));
      try {
        const file = join(folder, "report.json");
        const failuresFile = join(folder, "failures.txt");
        const { ok, output } = await runCommand({
          program: options.node ?? process.execPath,
          args: [
            vitestProgram,
            "run",
            ...(options.folders ?? []),
            `--project=${options.project}`,
            // Shown only of a run that did not come to its end: how far it came.
            "--reporter=default",
            "--reporter=json",
            `--reporter=${reporterFile}`,
            `--outputFile.json=${file}`,
          ],
          cwd: root,
          env: { NODE_OPTIONS: strictNode, ...options.env, [FAILURES_FILE]: failuresFile },
          timeoutMs: 900_000,
        });
        const [report, failures] = await Promise.all(
          [file, failuresFile].map((path) => readFile(path, "utf8").catch(() => "")),
        );
        const counted = countTests(report && (JSON.parse(report) as VitestReport), ok, output);
        // One that is let pass hides the next.
        const warnings = nodeWarnings(output);
        return {
          ...counted,
          failed: counted.failed + warnings.length,
          failures: [failures, ...warnings].filter(Boolean).join("\n"),
        };
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    },
  };
}

/**
 * Counts a report. A skipped or unwritten test has not shown anything, so it counts as failed; so
 * does a run that ended badly without a failed test (a file that does not load, a stray rejection).
 */
export function countTests(
  report: VitestReport | undefined | "",
  endedWell: boolean,
  output: string,
): GateResult {
  if (!report) return { passed: 0, failed: 1, output };
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests } = report;
  const failed = numFailedTests + numPendingTests + numTodoTests;
  const silent = failed === 0 && !(endedWell && report.success) ? 1 : 0;
  return { passed: numPassedTests, failed: failed + silent, output };
}
