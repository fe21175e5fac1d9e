import type { CancelTimer, Clock } from "../clock.ts";

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #now = 1_000_000;
  readonly #timers = new Set<Timer>();
  readonly #soon = new Set<() => void>();

  now(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): CancelTimer {
    if (ms === Number.POSITIVE_INFINITY) return () => undefined;
    const timer = { at: this.#now + Math.max(0, ms), callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  soon(callback: () => void): CancelTimer {
    const once = () => callback();
    this.#soon.add(once);
    return () => this.#soon.delete(once);
  }

  /** Timers that have been set and have neither fired nor been cancelled. */
  get pending(): number {
    return this.#timers.size + this.#soon.size;
  }

  /** Lets everything happen that needs no time to pass. */
  async settle(): Promise<void> {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      const due = [...this.#soon];
      if (due.length === 0) return;
      this.#soon.clear();
      for (const callback of due) callback();
    }
  }

  /** Lets time pass, firing timers in their order, each with everything that follows from it. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await this.settle();
    for (;;) {
      const [next] = [...this.#timers].sort((a, b) => a.at - b.at);
      if (next === undefined || next.at > end) break;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
      await this.settle();
    }
    this.#now = Math.max(this.#now, end);
  }

  /** Lets time pass in which the process stands still: what is due meanwhile waits for the next {@link advance}. */
  standStill(ms: number): void {
    this.#now += ms;
  }
}
