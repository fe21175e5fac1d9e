import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { constants } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { providePostgres } from "@venturi-tooling/postgres";
import { readDemoArguments } from "../../../examples/file-index/demo-arguments.ts";
import { root } from "./paths.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** A terminal and npm both pass on one Ctrl-C; within this time they are the same one. */
const SAME_SIGNAL_MS = 300;

/** Starts PostgreSQL, runs the demo of the file-index example on it, and stops it. */
async function main(): Promise<number> {
  const given = readDemoArguments(process.argv.slice(2));
  if ("usage" in given) {
    (given.exitCode === 0 ? console.log : console.error)(given.usage);
    return given.exitCode;
  }
  let stoppedCode = 0;
  const remember = (signal: NodeJS.Signals) => {
    stoppedCode ||= 128 + constants.signals[signal];
  };
  for (const signal of SIGNALS) process.on(signal, remember);
  const server = await providePostgres();
  try {
    if (stoppedCode !== 0) return stoppedCode;
    const isTemporary = server.origin !== "environment";
    console.log(`PostgreSQL: ${isTemporary ? `${server.origin} server` : "DATABASE_URL"}`);
    return await runExample(server.url, isTemporary);
  } finally {
    await server.stop();
  }
}

async function runExample(databaseUrl: string, isTemporary: boolean): Promise<number> {
  const file = (path: string) => pathToFileURL(join(root, path)).href;
  const child = spawn(
    process.execPath,
    [
      "--conditions=@venturi/source",
      ...["--import", pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href],
      ...["--import", file("tooling/ci/end-with-parent.mjs")],
      join(root, "examples/file-index/demo.ts"),
      ...(isTemporary ? ["--temporary"] : []),
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
