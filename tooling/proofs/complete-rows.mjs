// The long form of packages/worker/src/complete-proof.pg.test.ts: 10,000 jobs, or as many as the first argument says, whose
// handlers insert a row and complete in one transaction, while worker processes are killed throughout. Prints kills,
// runs that were cut off, completions and rows.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const [count = "10000"] = process.argv.slice(2);
const root = fileURLToPath(new URL("../../", import.meta.url));
const vitest = spawn(
  process.execPath,
  [
    "node_modules/vitest/vitest.mjs",
    "run",
    "--project=postgres",
    "--disable-console-intercept=true",
    "packages/worker/src/complete-proof.pg.test.ts",
  ],
  { cwd: root, stdio: "inherit", env: { ...process.env, COMPLETE_PROOF_JOBS: count } },
);
vitest.on("exit", (code) => {
  process.exitCode = code ?? 1;
});
