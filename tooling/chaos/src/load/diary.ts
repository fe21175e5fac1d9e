import { openSync, writeSync } from "node:fs";

/**
 * What a process did, in a file that outlives it: every line is with the kernel when the call returns, so that no
 * SIGKILL takes it back.
 */
export class Diary {
  readonly #file: number;

  constructor(path: string) {
    this.#file = openSync(path, "a");
  }

  /** An enqueue is about to be tried. */
  tried(ids: readonly string[], kind: string): void {
    this.#write(ids.map((id) => `t ${id} ${kind}\n`).join(""));
  }

  /** Enqueues have been accepted. */
  accepted(ids: readonly string[]): void {
    this.#write(ids.map((id) => `a ${id}\n`).join(""));
  }

  /** A handler has been called. */
  started(id: string, run: number): void {
    this.#write(`s ${id} ${run}\n`);
  }

  /** A handler is about to return or throw. */
  ended(id: string, run: number, how: "completed" | "paused" | "failed"): void {
    this.#write(`e ${id} ${run} ${how}\n`);
  }

  #write(text: string): void {
    writeSync(this.#file, text);
  }
}
