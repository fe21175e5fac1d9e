import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "./command.ts";
import type { Gate } from "./gate.ts";
import { root } from "./paths.ts";

interface ChaosReport {
  readonly scenarios: readonly {
    readonly scenario: string;
    readonly violations: readonly string[];
  }[];
}

/** A short selection of faults, always the same; counts its scenarios. */
export const chaosGate: Gate = {
  name: "faults survived",
  run: async () => {
    const folder = await mkdtemp(join(tmpdir(), "venturi-faults-"));
    try {
      const file = join(folder, "figures.json");
      const { ok, output } = await runCommand({
        program: process.execPath,
        args: ["--import", "tsx", "tooling/chaos/src/run.ts", "--test", "--out", file],
        cwd: root,
        timeoutMs: 240_000,
      });
      const report = await readFile(file, "utf8").catch(() => undefined);
      if (report === undefined) return { passed: 0, failed: 1, output };
      const { scenarios }: ChaosReport = JSON.parse(report);
      const passed = scenarios.filter(({ violations }) => violations.length === 0).length;
      const failed = scenarios.length - passed;
      const failures = scenarios
        .flatMap(({ scenario, violations }) => violations.map((each) => `${scenario}: ${each}`))
        .join("\n");
      return { passed, failed: ok || failed > 0 ? failed : 1, output, failures };
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};
