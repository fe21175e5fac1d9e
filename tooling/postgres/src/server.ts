import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chownSync, closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { ServerUser } from "./server-user.ts";

const START_ATTEMPTS = 5;
const START_TIMEOUT_MS = 60_000;

/** What is needed to run a server: its programs, its data and who owns them. */
export interface Cluster {
  readonly user: ServerUser;
  readonly binaries: string;
  /** Holds `data` and `log`. */
  readonly folder: string;
  readonly password: string;
}

/** A server that answers. */
export interface Server {
  readonly process: ChildProcess;
  readonly port: number;
  readonly url: string;
}

export interface StartOptions {
  readonly settings: Readonly<Record<string, string>>;
  /** Absent: a free one. */
  readonly port?: number;
  /** Gives up waiting for the server's answer. */
  readonly signal: AbortSignal;
}

const environment = { LC_ALL: "C", TZ: "UTC", PATH: process.env["PATH"] ?? "" };

/** Makes the data of an empty cluster. */
export function initialise({ user, binaries, folder, password }: Cluster): void {
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

/** Starts a server on its data and waits until it answers; throws what its log says when it does not. */
export async function start(
  cluster: Cluster,
  { settings, port: wanted, signal }: StartOptions,
): Promise<Server> {
  for (let attempt = 1; ; attempt++) {
    const port = wanted ?? (await freePort());
    const log = join(cluster.folder, "log");
    const server = run(cluster, { ...settings, port: String(port) }, log);
    const url = `postgres://postgres:${cluster.password}@127.0.0.1:${port}/postgres`;
    const failure = await ready(server, url, signal);
    if (failure === undefined) return { process: server, port, url };
    await stop(server);
    const text = readFileSync(log, "utf8");
    // Somebody took the port between our look and the server's.
    if (text.includes("Address already in use") && attempt < START_ATTEMPTS) {
      // A port that is wanted again may belong to somebody's connection meanwhile, and be free when that has ended.
      if (wanted !== undefined) await sleep(attempt * 500);
      continue;
    }
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
export async function stop(server: ChildProcess): Promise<void> {
  for (const signal of ["SIGINT", "SIGQUIT", "SIGKILL"] as const) {
    if (hasExited(server)) return;
    server.kill(signal);
    await Promise.race([exited(server), sleep(5_000, undefined, { ref: false })]);
  }
}

/** An immediate shutdown: nothing is written, nobody is told; the next start recovers as after a crash. */
export async function crash(server: ChildProcess): Promise<void> {
  server.kill("SIGQUIT");
  await exited(server);
}

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
}

export function exited(child: ChildProcess): Promise<void> {
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
