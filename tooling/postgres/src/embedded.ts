import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { KeeperAnswer, KeeperCommand, KeeperRequest } from "./keeper-protocol.ts";
import {
  type PostgresOptions,
  type RunningPostgres,
  resolveOptions,
  serverSettings,
} from "./options.ts";

/** A server of our own, which can be made to fail. Its address stays the same. */
export interface EmbeddedPostgres extends RunningPostgres {
  /** Takes it down as a crash would; resolves when it is down. */
  crash(): Promise<void>;
  /** Shuts it down in order, without waiting for its clients. */
  halt(): Promise<void>;
  /** Brings it back; resolves when it answers. */
  start(): Promise<void>;
  /** Starts a copy that streams from it. Needs no more than default settings; at most one at a time. */
  startStandby(): Promise<Standby>;
}

export interface Standby {
  /** Connection string of a superuser. */
  readonly url: string;
  /** Ends its recovery; resolves when it takes writes. */
  promote(): Promise<void>;
}

/**
 * Starts the embedded server on a free port of 127.0.0.1.
 *
 * A keeper process of its own session holds the server: a Ctrl-C in the terminal does not reach
 * it, and when the pipe from this process closes, however this process ended, it stops the server
 * and removes its data.
 */
export async function startEmbedded(options: PostgresOptions = {}): Promise<EmbeddedPostgres> {
  const resolved = resolveOptions(options);
  const request: KeeperRequest = { version: resolved.version, settings: serverSettings(resolved) };
  const keeper = new Keeper(request);
  const answer = await keeper.started;
  if ("error" in answer) {
    await keeper.ended;
    throw new Error(`PostgreSQL ${resolved.version} did not start: ${answer.error}`);
  }
  keeper.unref();
  const stop = () => keeper.stop();
  return {
    origin: "embedded",
    url: answer.url,
    crash: async () => void (await keeper.call("crash")),
    halt: async () => void (await keeper.call("halt")),
    start: async () => void (await keeper.call("start")),
    startStandby: async () => ({
      url: await keeper.call("standby"),
      promote: async () => void (await keeper.call("promote")),
    }),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** The keeper process, as seen from here. */
class Keeper {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #waiting = new Map<number, (answer: KeeperAnswer) => void>();
  #calls = 0;
  readonly started: Promise<KeeperAnswer>;
  readonly ended: Promise<unknown>;

  constructor(request: KeeperRequest) {
    this.#process = spawn(
      process.execPath,
      [
        "--import",
        pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href,
        fileURLToPath(new URL("./keeper.ts", import.meta.url)),
        JSON.stringify(request),
      ],
      { detached: true, stdio: ["pipe", "pipe", "inherit"], env: keeperEnvironment() },
    );
    this.ended = once(this.#process, "close").then(() => this.#fail());
    this.started = this.#answerTo(0);
    createInterface({ input: this.#process.stdout }).on("line", (line) => {
      const answer: KeeperAnswer = JSON.parse(line);
      const call = answer.call ?? 0;
      this.#waiting.get(call)?.(answer);
      this.#waiting.delete(call);
    });
  }

  async call(verb: KeeperCommand["verb"]): Promise<string> {
    this.#calls += 1;
    const command: KeeperCommand = { call: this.#calls, verb };
    const answered = this.#answerTo(command.call);
    this.#process.ref();
    ref(this.#process.stdout);
    this.#process.stdin.write(`${JSON.stringify(command)}\n`);
    const answer = await answered;
    this.unref();
    if ("error" in answer) throw new Error(`PostgreSQL did not ${verb}: ${answer.error}`);
    return answer.url;
  }

  async stop(): Promise<void> {
    this.#process.ref();
    // Its end is known when its output has been read.
    ref(this.#process.stdout);
    this.#process.stdin.end();
    await this.ended;
  }

  /** Forgetting to stop the server must not keep this process alive. */
  unref(): void {
    this.#process.unref();
    for (const pipe of [this.#process.stdin, this.#process.stdout]) unref(pipe);
  }

  #answerTo(call: number): Promise<KeeperAnswer> {
    return new Promise((resolve) => this.#waiting.set(call, resolve));
  }

  #fail(): void {
    for (const tell of this.#waiting.values()) tell({ error: "its keeper process ended early" });
    this.#waiting.clear();
  }
}

/** The keeper must not run what the parent's Node options ask for (loaders, inspectors). */
function keeperEnvironment(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _, ...rest } = process.env;
  return rest;
}

function ref(pipe: object): void {
  if ("ref" in pipe && typeof pipe.ref === "function") pipe.ref();
}

function unref(pipe: object): void {
  if ("unref" in pipe && typeof pipe.unref === "function") pipe.unref();
}
