import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Telemetry } from "./telemetry.ts";

const scripts = {
  producer: new URL("./child-producer.ts", import.meta.url),
  worker: new URL("./child-worker.ts", import.meta.url),
} as const;

/** A process that enqueues and ends, or one that works until it is told to stop. */
export class Child {
  readonly #process: ChildProcess;
  readonly #lines: string[] = [];
  readonly #ended: Promise<string>;
  #errors = "";
  #onLine: () => void = () => undefined;

  constructor(role: keyof typeof scripts, ...args: readonly string[]) {
    const script = fileURLToPath(scripts[role]);
    const node = ["--conditions=@venturi/source", "--import", "tsx", script, ...args];
    const child = spawn(process.execPath, node, { stdio: ["ignore", "pipe", "pipe"] });
    this.#process = child;
    child.stderr.on("data", (text: Buffer) => {
      this.#errors += text;
    });
    createInterface({ input: child.stdout }).on("line", (line) => {
      this.#lines.push(line);
      this.#onLine();
    });
    this.#ended = new Promise((resolve) => {
      child.on("close", (code, signal) => resolve(String(code ?? signal)));
    });
  }

  /** Resolves when it has written this line; rejects when it ends without having done so. */
  async said(line: string): Promise<void> {
    const heard = new Promise<void>((resolve) => {
      this.#onLine = () => this.#lines.includes(line) && resolve();
      this.#onLine();
    });
    const ended = this.#ended.then((how) => {
      throw new Error(`the process ended (${how}) without saying ${line}: ${this.#errors}`);
    });
    await Promise.race([heard, ended]);
  }

  /** Ends it where it stands. */
  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#ended;
  }

  /** Resolves when it has ended by itself, with what it recorded. */
  async telemetry(): Promise<Telemetry> {
    const how = await this.#ended;
    if (how !== "0") throw new Error(`the process ended (${how}): ${this.#errors}`);
    return JSON.parse(this.#lines.at(-1) ?? "");
  }

  /** Tells a worker to stop; resolves with what it recorded. */
  stop(): Promise<Telemetry> {
    this.#process.kill("SIGTERM");
    return this.telemetry();
  }
}
