import { createDatabase, dropDatabase } from "@venturi-tooling/postgres";
import { runCommand } from "./command.ts";
import type { Gate } from "./gate.ts";
import { nodePath } from "./nodes.ts";
import { root } from "./paths.ts";

/** A producer and a worker, built, on another Node. */
export function smokeGate(major: number, serverUrl: string): Gate {
  return {
    name: `producer and worker on Node ${major}`,
    run: async () => {
      const database = await createDatabase(serverUrl);
      try {
        const { ok, output } = await runCommand({
          program: nodePath(major),
          args: ["tooling/ci/smoke.mjs"],
          cwd: root,
          env: { DATABASE_URL: database },
          timeoutMs: 60_000,
        });
        return { passed: ok ? 1 : 0, failed: ok ? 0 : 1, output };
      } finally {
        await dropDatabase(serverUrl, database);
      }
    },
  };
}
