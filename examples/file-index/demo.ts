// Indexes a directory with real jobs: node demo.ts [DIRECTORY] [--workers 2], with DATABASE_URL set.
import { parseArgs } from "node:util";
import { runDemo } from "./run-demo.ts";

const { values, positionals } = parseArgs({
  options: { workers: { type: "string", default: "2" } },
  allowPositionals: true,
});
const databaseUrl = process.env["DATABASE_URL"];
if (databaseUrl === undefined) {
  console.error("usage: DATABASE_URL=postgres://… node demo.ts [DIRECTORY] [--workers 2]");
  process.exit(2);
}

const stopping = new AbortController();
const { signal } = stopping;
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(name, () => stopping.abort());
}

try {
  const workers = Number(values.workers);
  await runDemo({ databaseUrl, directory: positionals[0] ?? ".", workers, signal });
} catch (error) {
  if (signal.aborted) process.exitCode = 130;
  else {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
