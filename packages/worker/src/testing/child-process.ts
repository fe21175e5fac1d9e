import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { WorkerOptions } from "../index.ts";
import { until } from "./signals.ts";

export interface ChildOptions {
  readonly url: string;
  readonly kind: string;
  /** How long a handler takes, in milliseconds. */
  readonly handlerMs: number;
  /** How long the handler blocks the event loop before, in milliseconds. */
  readonly blockMs?: number;
  /** The task's backoff, in milliseconds; absent: the worker's. */
  readonly backoffMs?: number;
  /** Whether the handler writes a row to `written` and completes its run in one transaction. */
  readonly isWriting?: boolean;
  /** Whether the handler kills its own process. */
  readonly isPoison?: boolean;
  readonly worker: WorkerOptions;
}

const script = fileURLToPath(new URL("./child-worker.ts", import.meta.url));

/** A worker process that a test can watch and kill. It does not outlive its test. */
export class WorkerProcess {
  /** The lines it has written. */
  readonly lines: string[] = [];
  /** What it has written to its standard error. */
  errors = "";
  readonly #child: ChildProcess;
  readonly #exit: Promise<number | NodeJS.Signals | null>;

  constructor(options: ChildOptions) {
    const node = ["--conditions=@venturi/source", "--import", "tsx", script];
    const child = spawn(process.execPath, [...node, JSON.stringify(options)], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    createInterface({ input: child.stdout }).on("line", (line) => this.lines.push(line));
    child.stderr.on("data", (text: Buffer) => {
      this.errors += text;
    });
    this.#exit = new Promise((resolve) => {
      child.on("exit", (code, signal) => resolve(code ?? signal));
    });
    onTestFinished(async () => {
      if (this.isAlive) await this.kill("SIGKILL");
    });
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Resolves when it has written a line that starts like this. */
  said(start: string, withinMs = 20_000): Promise<void> {
    return until(() => this.lines.some((line) => line.startsWith(start)), {
      what: `a worker process says ${start}: ${this.errors}`,
      withinMs,
    });
  }

  /** Resolves when it has ended, with its exit code or the signal that ended it. */
  get ended(): Promise<number | NodeJS.Signals | null> {
    return this.#exit;
  }

  /** Ends it and returns its exit code, or the signal that ended it. */
  kill(signal: NodeJS.Signals): Promise<number | NodeJS.Signals | null> {
    this.#child.kill(signal);
    return this.#exit;
  }
}
