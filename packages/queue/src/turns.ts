/** Lets work on the same names be done one at a time, in order of arrival. No lock: work that has waited too long goes ahead. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();
  readonly #maxWaitMs: number;

  constructor(maxWaitMs: number) {
    this.#maxWaitMs = maxWaitMs;
  }

  /** Whether somebody has or awaits a turn on any of the names. */
  areTaken(names: readonly string[]): boolean {
    return names.some((name) => this.#last.has(name));
  }

  async take<T>(names: readonly string[], work: () => Promise<T>): Promise<T> {
    let end: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const before = Promise.all(names.map((name) => this.#last.get(name)));
    const last = Promise.all([before, ended]);
    // All names at once: of two that want the same names, only one waits for the other.
    for (const name of names) this.#last.set(name, last);
    try {
      await this.#wait(before);
      return await work();
    } finally {
      end();
      for (const name of names) if (this.#last.get(name) === last) this.#last.delete(name);
    }
  }

  async #wait(before: Promise<unknown>): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const enough = new Promise((resolve) => {
      timer = setTimeout(resolve, this.#maxWaitMs);
    });
    await Promise.race([before, enough]);
    clearTimeout(timer);
  }
}
