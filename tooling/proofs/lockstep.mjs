// The long form of packages/store-postgres/src/lockstep.pg.test.ts: 10,000 scenarios, or as many as the first argument
// says, from a seed that the second may name. Prints how many scenarios and commands the two stores answered alike.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const [scenarios = "10000", seed] = process.argv.slice(2);
const root = fileURLToPath(new URL("../../", import.meta.url));
const vitest = spawn(
  process.execPath,
  [
    "node_modules/vitest/vitest.mjs",
    "run",
    "--project=postgres",
    "--disableConsoleIntercept=true",
    "--testNamePattern=longer",
    "packages/store-postgres/src/lockstep.pg.test.ts",
  ],
  {
    cwd: root,
    stdio: "inherit",
    env: {
      ...process.env,
      LOCKSTEP_SCENARIOS: scenarios,
      ...(seed === undefined ? {} : { LOCKSTEP_SEED: seed }),
    },
  },
);
vitest.on("exit", (code) => {
  process.exitCode = code ?? 1;
});
