// The long form of packages/worker/src/fuzz.test.ts and fuzz.pg.test.ts: a million generated inputs, or as many as the
// first argument says, a sixteenth of them through the database, from a seed that the second may name. Prints how many
// of the latter were refused, by code. A failure prints its seed and, for arguments, its counterexample.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const [inputs = "1000000", seed = String(Date.now() % 1_000_000)] = process.argv.slice(2);
const root = fileURLToPath(new URL("../../", import.meta.url));
const throughDatabase = Math.ceil(Number(inputs) / 16);
console.log(`seed ${seed}: ${inputs} inputs, ${throughDatabase} of them through the database`);

async function run(project, file, env) {
  const vitest = spawn(
    process.execPath,
    [
      "--unhandled-rejections=strict",
      "node_modules/vitest/vitest.mjs",
      "run",
      `--project=${project}`,
      "--disableConsoleIntercept=true",
      file,
    ],
    { cwd: root, stdio: "inherit", env: { ...process.env, FUZZ_SEED: seed, ...env } },
  );
  const [code] = await once(vitest, "exit");
  if (code !== 0) process.exitCode = 1;
}

await run("postgres", "packages/worker/src/fuzz.pg.test.ts", {
  FUZZ_DATABASE: String(throughDatabase),
});
await run("unit", "packages/worker/src/fuzz.test.ts", {
  FUZZ_ARGUMENTS: String(Number(inputs) - throughDatabase),
});
