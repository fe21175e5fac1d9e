// Works until it is told to stop: npm start -- [--concurrency 32] [--worker-timeout 30s]
import { parseArgs } from "node:util";
import { parseDuration } from "@venturi/core";
import { createIndexWorker } from "./index-worker.ts";

const { values } = parseArgs({
  options: { concurrency: { type: "string" }, "worker-timeout": { type: "string" } },
});
const connectionString = process.env["DATABASE_URL"];
if (connectionString === undefined) {
  console.error("usage: DATABASE_URL=postgres://… npm start");
  process.exit(2);
}

const stopping = new AbortController();
const stop = () => stopping.abort();
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, stop);
// Started by another program, it ends with that program, however that one ended.
process.on("disconnect", stop);

try {
  const worker = await createIndexWorker({
    connectionString,
    concurrency: Number(values.concurrency ?? 32),
    workerTimeout: parseDuration(values["worker-timeout"] ?? "30s"),
  });
  if (process.connected) process.send?.("ready");
  const { unreleased } = await worker.run(stopping.signal);
  for (const id of unreleased) console.warn(`job ${id} is left to other workers`);
  await worker.close();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
if (process.connected) process.disconnect();
