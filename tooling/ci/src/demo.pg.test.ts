import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { testDatabase } from "@venturi-tooling/testing";
import { expect, onTestFinished, test } from "vitest";
import { root } from "./paths.ts";

const database = await testDatabase({ migrated: false });

test("the demo indexes a folder and says what became of every job", async () => {
  const demo = startDemo(["tooling/postgres/src"], { DATABASE_URL: database.url });
  const lines = await linesOf(demo);
  expect(demo.exitCode).toBe(0);
  expect(lines.join("\n")).toMatch(/outcomes +\d+ completed, 2 dead/);
}, 60_000);

test("the demo says how it is called before it starts a server", async () => {
  const help = startDemo(["--help"], { DATABASE_URL: undefined });
  const lines = await linesOf(help);
  expect(lines[0]).toMatch(/^usage: npm run demo/);
  expect(lines.join("\n")).not.toContain("PostgreSQL: ");
  expect(help.exitCode).toBe(0);
});

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)(
  "%s stops the demo with %i, and leaves nothing running",
  async (signal, code) => {
    // The server keeps its files in the temporary folder, and takes them away when it ends.
    const temporary = await mkdtemp(join(tmpdir(), "venturi-demo-"));
    await chmod(temporary, 0o755);
    onTestFinished(() => rm(temporary, { recursive: true, force: true }));
    const demo = startDemo(["."], { DATABASE_URL: undefined, TMPDIR: temporary });
    const lines = await linesOf(demo, (line) => {
      if (line.startsWith("files ")) demo.kill(signal);
    });
    expect(lines.join("\n")).toContain(
      "stopping: runs may finish, the rest goes with this database",
    );
    expect(demo.exitCode).toBe(code);
    const isServers = (name: string) => name.startsWith("venturi-postgres-");
    while ((await readdir(temporary)).some(isServers)) await sleep(20);
  },
  60_000,
);

type Demo = ChildProcessByStdio<null, Readable, null>;

function startDemo(args: string[], env: Record<string, string | undefined>): Demo {
  const demo = spawn(process.execPath, ["--import", "tsx", "tooling/ci/src/demo.ts", ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => {
    demo.kill("SIGKILL");
  });
  return demo;
}

async function linesOf(demo: Demo, onLine: (line: string) => void = () => undefined) {
  const lines: string[] = [];
  createInterface({ input: demo.stdout }).on("line", (line) => {
    lines.push(line);
    onLine(line);
  });
  await once(demo, "close");
  return lines;
}
