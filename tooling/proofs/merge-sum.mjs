// The long form of packages/queue/src/merge-sum.pg.test.ts: 50 producers in four processes add to one counter, each as
// often as the first argument says, 100 times by default; every fourth addition is in a transaction, and half of these
// roll back. Prints what was added, what the counter holds, and how long it took.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const [additions = "100"] = process.argv.slice(2);
const root = fileURLToPath(new URL("../../", import.meta.url));
const vitest = spawn(
  process.execPath,
  [
    "node_modules/vitest/vitest.mjs",
    "run",
    "--project=postgres",
    "--disable-console-intercept=true",
    "packages/queue/src/merge-sum.pg.test.ts",
  ],
  { cwd: root, stdio: "inherit", env: { ...process.env, MERGE_SUM_ADDITIONS: additions } },
);
vitest.on("exit", (code) => {
  process.exitCode = code ?? 1;
});
