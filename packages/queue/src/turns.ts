/**
 * Lets work on the same names happen one at a time, first come first, whoever brings it. A gate is an aid and no
 * lock: who has waited for too long goes ahead.
 */
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
    // All at once, so that two which want the same names wait for one another in one direction only.
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
