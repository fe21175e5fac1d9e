import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { providePostgres, startEmbedded } from "@venturi-tooling/postgres";
import { endCommandsWithThis } from "./command.ts";
import { allStages } from "./gates.ts";
import { runStages } from "./run-gates.ts";

const say = (line: string) => console.log(line);

/** Runs every gate and says how many tests passed and failed; the exit code follows. */
async function main(): Promise<void> {
  // Output is read by machines and kept in logs.
  Object.assign(process.env, { NO_COLOR: "1", FORCE_COLOR: "0", CI: "true" });
  const workFolder = mkdtempSync(join(tmpdir(), "venturi-ci-"));
  process.on("exit", () => rmSync(workFolder, { recursive: true, force: true }));
  const { TEST_DATABASE_URL, DATABASE_URL, ...environment } = process.env;
  const url = TEST_DATABASE_URL ?? DATABASE_URL;
  await using server = await providePostgres(
    { durable: false },
    { ...environment, DATABASE_URL: url },
  );
  await using oldServer = await startEmbedded({
    version: 14,
    durable: false,
    // Far from this machine's: nothing may depend on a session's time zone.
    settings: { timezone: "Asia/Kolkata" },
  });
  say(`PostgreSQL: ${server.origin}, and 14 ${oldServer.origin}; Node ${process.version}\n`);
  const context = { serverUrl: server.url, oldServerUrl: oldServer.url, workFolder };
  const { passed, failed } = await runStages(allStages(context), say);
  process.exitCode = failed > 0 ? 1 : 0;
  say(`\n${passed} passed, ${failed} failed`);
}

endCommandsWithThis();

main().catch((error: unknown) => {
  say(error instanceof Error ? (error.stack ?? error.message) : String(error));
  say("\n0 passed, 1 failed");
  process.exitCode = 1;
});
