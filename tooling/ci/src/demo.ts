import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { providePostgres } from "@venturi-tooling/postgres";
import { root } from "./paths.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** A terminal and npm both pass on one Ctrl-C; within this time they are the same one. */
const SAME_SIGNAL_MS = 300;

/** Starts PostgreSQL, runs the demo of the file-index example on it, and stops it. */
async function main(): Promise<number> {
  const stopping = new AbortController();
  const remember = () => stopping.abort();
  for (const signal of SIGNALS) process.on(signal, remember);
  const server = await providePostgres();
  try {
    if (stopping.signal.aborted) return 130;
    const where = server.origin === "environment" ? "DATABASE_URL" : `${server.origin} server`;
    console.log(`PostgreSQL: ${where}`);
    return await runExample(server.url);
  } finally {
    await server.stop();
  }
}

async function runExample(databaseUrl: string): Promise<number> {
  const file = (path: string) => pathToFileURL(join(root, path)).href;
  const child = spawn(
    process.execPath,
    [
      "--conditions=@venturi/source",
      ...["--import", pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href],
      ...["--import", file("tooling/ci/end-with-parent.mjs")],
      join(root, "examples/file-index/demo.ts"),
      ...process.argv.slice(2),
    ],
    {
      cwd: root,
      env: { ...process.env, DATABASE_URL: databaseUrl },
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      // In the terminal's group it would hear of a Ctrl-C twice, and take the second for haste.
      detached: true,
    },
  );
  let last = Number.NEGATIVE_INFINITY;
  const passOn = (signal: NodeJS.Signals) => {
    const now = performance.now();
    if (now - last > SAME_SIGNAL_MS) child.kill(signal);
    last = now;
  };
  for (const signal of SIGNALS) process.on(signal, passOn);
  const [code] = await once(child, "exit");
  return typeof code === "number" ? code : 1;
}

main().then(
  (code) => {
    process.exitCode = code;
    for (const signal of SIGNALS) process.removeAllListeners(signal);
  },
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  },
);
