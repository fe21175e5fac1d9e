/** Shows progress: one line that is written over on a terminal, a line every few seconds elsewhere. */
export class ProgressLine {
  readonly #output: NodeJS.WriteStream;
  readonly #everyMs: number;
  #shownAt = Number.NEGATIVE_INFINITY;
  #isOpen = false;

  constructor(output: NodeJS.WriteStream = process.stdout, everyMs = output.isTTY ? 200 : 2_000) {
    this.#output = output;
    this.#everyMs = everyMs;
  }

  show(text: string): void {
    const now = performance.now();
    if (now - this.#shownAt < this.#everyMs) return;
    this.#shownAt = now;
    if (this.#output.isTTY) {
      // Some terminals say that they have no columns.
      const width = (this.#output.columns || 80) - 1;
      this.#output.write(`\r\u001b[2K${text.slice(0, width)}`);
      this.#isOpen = true;
    } else {
      this.#output.write(`${text}\n`);
    }
  }

  /** What is printed next starts on a line of its own. */
  end(): void {
    if (this.#isOpen) this.#output.write("\n");
    this.#isOpen = false;
    this.#shownAt = Number.NEGATIVE_INFINITY;
  }
}
