/**
 * The process that holds an embedded server: starts it, says where it is, and stops it when its
 * standard input closes or it is told to end.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chownSync, closeSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { findBinaries } from "./binaries.ts";
import type { KeeperAnswer, KeeperRequest } from "./embedded.ts";
import { chooseServerUser, makeWorkFolder, type ServerUser } from "./server-user.ts";

const START_ATTEMPTS = 5;
const START_TIMEOUT_MS = 60_000;

interface Cluster {
  readonly user: ServerUser;
  readonly binaries: string;
  readonly folder: string;
  readonly password: string;
}

const environment = { LC_ALL: "C", TZ: "UTC", PATH: process.env["PATH"] ?? "" };

async function keep(request: KeeperRequest): Promise<void> {
  const user = chooseServerUser();
  const folder = makeWorkFolder(user);
  let server: ChildProcess | undefined;
  const asked = askedToEnd();
  try {
    const binaries = findBinaries(request.version, user, folder);
    const cluster: Cluster = { user, binaries, folder, password: randomBytes(18).toString("hex") };
    initialise(cluster);
    const started = await start(cluster, request.settings, asked.signal);
    server = started.server;
    answer({ url: started.url });
    await Promise.race([asked.ended, exited(server)]);
  } finally {
    if (server) await stop(server);
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

function initialise({ user, binaries, folder, password }: Cluster): void {
  const passwordFile = join(folder, "password");
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (user) chownSync(passwordFile, user.uid, user.gid);
  const args = ["-D", join(folder, "data"), "-U", "postgres", "--pwfile", passwordFile];
  args.push("--auth=password", "--encoding=UTF8", "--no-locale", "--no-sync");
  const { status, stderr, stdout } = spawnSync(join(binaries, "bin", "initdb"), args, {
    ...user,
    cwd: folder,
    env: environment,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`initdb failed\n${stdout ?? ""}${stderr ?? ""}`);
}

async function start(
  cluster: Cluster,
  settings: KeeperRequest["settings"],
  signal: AbortSignal,
): Promise<{ server: ChildProcess; url: string }> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const log = join(cluster.folder, "log");
    const server = run(cluster, { ...settings, port: String(port) }, log);
    const url = `postgres://postgres:${cluster.password}@127.0.0.1:${port}/postgres`;
    const failure = await ready(server, url, signal);
    if (failure === undefined) return { server, url };
    await stop(server);
    const text = readFileSync(log, "utf8");
    // Somebody took the port between our look and the server's.
    if (text.includes("Address already in use") && attempt < START_ATTEMPTS) continue;
    throw new Error(`${failure}; its log says:\n${text}`);
  }
}

function run(cluster: Cluster, settings: Record<string, string>, log: string): ChildProcess {
  const all = { ...settings, listen_addresses: "127.0.0.1", unix_socket_directories: "" };
  const args = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const output = openSync(log, "w");
  const server = spawn(
    join(cluster.binaries, "bin", "postgres"),
    ["-D", join(cluster.folder, "data"), ...args],
    {
      ...cluster.user,
      cwd: cluster.folder,
      env: environment,
      stdio: ["ignore", output, output],
    },
  );
  closeSync(output);
  return server;
}

async function ready(
  server: ChildProcess,
  url: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline) {
    if (signal.aborted) return "it was told to end while starting";
    if (hasExited(server)) return `the server ended with code ${server.exitCode}`;
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
    // A refused connection is no news while the server starts.
    client.on("error", () => undefined);
    const connected = await client.connect().then(
      () => true,
      () => false,
    );
    if (connected) {
      await client.end();
      return undefined;
    }
    await sleep(20);
  }
  return `the server did not answer within ${START_TIMEOUT_MS / 1_000} s`;
}

/** A fast shutdown; a server that does not follow is ended the hard way (its data goes anyway). */
async function stop(server: ChildProcess): Promise<void> {
  for (const signal of ["SIGINT", "SIGQUIT", "SIGKILL"] as const) {
    if (hasExited(server)) return;
    server.kill(signal);
    await Promise.race([exited(server), sleep(5_000, undefined, { ref: false })]);
  }
}

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
}

function exited(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (hasExited(child)) resolve();
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      const port = typeof address === "object" && address ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}

/** The end of this process's reason to be: its parent's pipe closed, or a signal. */
function askedToEnd(): { signal: AbortSignal; ended: Promise<void> } {
  const controller = new AbortController();
  const ended = new Promise<void>((resolve) => {
    const end = () => {
      controller.abort();
      resolve();
    };
    process.stdin.on("end", end).on("close", end).on("error", end).resume();
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, end);
  });
  return { signal: controller.signal, ended };
}

function answer(message: KeeperAnswer): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

// The parent may be gone before it has read the answer.
process.stdout.on("error", () => undefined);

keep(JSON.parse(process.argv[2] ?? "{}") as KeeperRequest).then(
  () => process.exit(0),
  (error: unknown) => {
    const text = error instanceof Error ? error.message : String(error);
    process.stdout.write(`${JSON.stringify({ error: text } satisfies KeeperAnswer)}\n`, () =>
      process.exit(1),
    );
  },
);
