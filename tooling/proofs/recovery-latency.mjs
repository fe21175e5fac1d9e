// The long form of packages/worker/src/recovery-proof.pg.test.ts: 200 kills of worker processes, or as many as the first argument
// says, ten of which work at once. Prints how long after a kill its job was recovered.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const [count = "200"] = process.argv.slice(2);
const root = fileURLToPath(new URL("../../", import.meta.url));
const vitest = spawn(
  process.execPath,
  [
    "node_modules/vitest/vitest.mjs",
    "run",
    "--project=postgres",
    "--disable-console-intercept=true",
    "packages/worker/src/recovery-proof.pg.test.ts",
  ],
  { cwd: root, stdio: "inherit", env: { ...process.env, RECOVERY_PROOF_KILLS: count } },
);
vitest.on("exit", (code) => {
  process.exitCode = code ?? 1;
});
