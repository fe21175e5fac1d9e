import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Message, ProcessTarget, Verb, Verbs } from "./protocol.ts";

const script = fileURLToPath(new URL("./child.ts", import.meta.url));
const exitMs = 5_000;

interface Waiting {
  readonly resolve: (result: never) => void;
  readonly reject: (error: Error) => void;
}

/** A process of one system, as the harness sees it. */
export class BenchProcess {
  readonly #child: ChildProcess;
  readonly #name: string;
  readonly #waiting = new Map<number, Waiting>();
  #calls = 0;
  #output = "";
  #isClosing = false;
  /** Called with the number of jobs handled so far, every few milliseconds while it grows. */
  onProgress: (handled: number) => void = () => undefined;

  private constructor(node: string, target: ProcessTarget) {
    this.#name = target.system;
    this.#child = fork(script, [JSON.stringify(target)], {
      execPath: node,
      // No loaders: this Node reads TypeScript itself, and packages resolve as they do for their users.
      execArgv: [],
      env: { ...process.env, NODE_OPTIONS: "", NODE_ENV: "production", NODE_NO_WARNINGS: "1" },
      serialization: "advanced",
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on("data", (chunk: Buffer) => {
        this.#output = (this.#output + chunk.toString()).slice(-10_000);
      });
    this.#child.on("message", (message: Message) => this.#receive(message));
    this.#child.on("exit", (code, signal) => this.#ended(`ended with ${signal ?? code}`));
  }

  static async start(node: string, target: ProcessTarget): Promise<BenchProcess> {
    const started = new BenchProcess(node, target);
    await started.#answer(0);
    return started;
  }

  /** Asks for something; rejects when the process fails at it or ends. */
  call<V extends Verb>(
    verb: V,
    ...[argument]: Parameters<Verbs[V]>
  ): Promise<Awaited<ReturnType<Verbs[V]>>> {
    this.#calls += 1;
    const answer = this.#answer<Awaited<ReturnType<Verbs[V]>>>(this.#calls);
    this.#child.send({ call: this.#calls, verb, argument });
    return answer;
  }

  /** What the process wrote to its standard output and error. */
  get output(): string {
    return this.#output;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true;
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), exitMs);
    if (this.#child.connected) this.#child.disconnect();
    await ended;
    clearTimeout(timer);
  }

  #answer<T>(call: number): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(call, { resolve, reject });
    });
  }

  #receive(message: Message): void {
    if ("handled" in message) {
      this.onProgress(message.handled);
      return;
    }
    const waiting = this.#waiting.get(message.call);
    this.#waiting.delete(message.call);
    if ("error" in message) waiting?.reject(new Error(`${this.#name}: ${message.error}`));
    else waiting?.resolve(message.result as never);
  }

  #ended(how: string): void {
    if (this.#isClosing) return;
    for (const { reject } of this.#waiting.values())
      reject(new Error(`${this.#name} ${how}\n${this.#output}`));
    this.#waiting.clear();
  }
}
