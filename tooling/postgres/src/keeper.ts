/**
 * The process that holds an embedded server: starts it, says where it is, does to it what it is asked to, and stops it
 * when its standard input closes or it is told to end.
 */
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { findBinaries } from "./binaries.ts";
import type { KeeperAnswer, KeeperCommand, KeeperRequest } from "./keeper-protocol.ts";
import { type Cluster, crash, exited, initialise, type Server, start, stop } from "./server.ts";
import { chooseServerUser, makeWorkFolder } from "./server-user.ts";
import { copyToStandby, promote, streamsFrom } from "./standby.ts";

async function keep(request: KeeperRequest): Promise<void> {
  const user = chooseServerUser();
  const folder = makeWorkFolder(user);
  const asked = askedToEnd();
  const kept = new Kept(request, asked.signal);
  try {
    const binaries = findBinaries(request.version, user, folder);
    const cluster: Cluster = { user, binaries, folder, password: randomBytes(18).toString("hex") };
    initialise(cluster);
    answer({ url: await kept.startFirst(cluster) });
    createInterface({ input: process.stdin }).on("line", (line) => kept.obey(JSON.parse(line)));
    await Promise.race([asked.ended, kept.isGone]);
  } finally {
    await kept.end();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** A server that may be taken down and brought back, and its standby. */
class Kept {
  readonly #request: KeeperRequest;
  readonly #signal: AbortSignal;
  #cluster: Cluster | undefined;
  #server: Server | undefined;
  #standby: Server | undefined;
  #isMeantToBeDown = false;
  #queue: Promise<unknown> = Promise.resolve();
  #tellGone: () => void = () => undefined;
  /** The server has ended, and nobody asked for that. */
  readonly isGone = new Promise<void>((resolve) => {
    this.#tellGone = resolve;
  });

  constructor(request: KeeperRequest, signal: AbortSignal) {
    this.#request = request;
    this.#signal = signal;
  }

  async startFirst(cluster: Cluster): Promise<string> {
    this.#cluster = cluster;
    return this.#start(cluster);
  }

  /** Obeys one command after another, and answers each. */
  obey({ call, verb }: KeeperCommand): void {
    this.#queue = this.#queue
      .then(() => this.#do(verb))
      .then(
        (url) => answer({ call, url }),
        (error: unknown) => answer({ call, error: textOf(error) }),
      );
  }

  async end(): Promise<void> {
    this.#isMeantToBeDown = true;
    for (const server of [this.#standby, this.#server]) if (server) await stop(server.process);
  }

  async #do(verb: KeeperCommand["verb"]): Promise<string> {
    const { cluster, server } = this.#running();
    switch (verb) {
      case "start":
        return this.#start(cluster, server.port);
      case "crash":
      case "halt":
        this.#isMeantToBeDown = true;
        await (verb === "crash" ? crash : stop)(server.process);
        return server.url;
      case "standby": {
        if (this.#standby) await stop(this.#standby.process);
        const copy = await copyToStandby(cluster, server);
        const settings = { ...this.#request.settings, ...streamsFrom(cluster, server) };
        this.#standby = await start(copy, { settings, signal: this.#signal });
        return this.#standby.url;
      }
      case "promote":
        if (this.#standby) await promote(this.#standby);
        return this.#standby?.url ?? server.url;
    }
  }

  async #start(cluster: Cluster, port?: number): Promise<string> {
    const { settings } = this.#request;
    const where = port === undefined ? {} : { port };
    const server = await start(cluster, { settings, signal: this.#signal, ...where });
    this.#server = server;
    this.#isMeantToBeDown = false;
    void exited(server.process).then(() => {
      if (!this.#isMeantToBeDown) this.#tellGone();
    });
    return server.url;
  }

  #running(): { cluster: Cluster; server: Server } {
    if (this.#cluster && this.#server) return { cluster: this.#cluster, server: this.#server };
    throw new Error("the server has not been started");
  }
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

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

// The parent may be gone before it has read the answer.
process.stdout.on("error", () => undefined);

keep(JSON.parse(process.argv[2] ?? "{}") as KeeperRequest).then(
  () => process.exit(0),
  (error: unknown) => {
    const message: KeeperAnswer = { error: textOf(error) };
    process.stdout.write(`${JSON.stringify(message)}\n`, () => process.exit(1));
  },
);
