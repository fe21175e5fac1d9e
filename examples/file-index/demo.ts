// Indexes a directory with real jobs: node demo.ts [DIRECTORY] [--workers 2], with DATABASE_URL set.
import { constants } from "node:os";
import { readDemoArguments, usage } from "./demo-arguments.ts";
import { runDemo } from "./run-demo.ts";

const given = readDemoArguments(process.argv.slice(2));
if ("usage" in given) {
  (given.exitCode === 0 ? console.log : console.error)(given.usage);
  process.exit(given.exitCode);
}
const databaseUrl = process.env["DATABASE_URL"];
if (databaseUrl === undefined) {
  console.error(usage);
  process.exit(2);
}

const stopping = new AbortController();
const { signal } = stopping;
let stoppedCode = 0;
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(name, () => {
    stoppedCode ||= 128 + constants.signals[name];
    stopping.abort();
  });
}

try {
  await runDemo({ ...given, databaseUrl, signal });
} catch (error) {
  if (signal.aborted) process.exitCode = stoppedCode;
  else {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
