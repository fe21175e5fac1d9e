/** How waits between tries grow. */
export interface GrowingDelayOptions {
  /** The first wait, in milliseconds. */
  readonly firstMs: number;
  /** No wait is longer, in milliseconds. */
  readonly mostMs: number;
  /** Whether each wait is shortened by up to a quarter, so that many workers do not try in step. */
  readonly jitter: boolean;
}

/** Waits that double from one try to the next, until a try succeeds. */
export class GrowingDelay {
  readonly #options: GrowingDelayOptions;
  readonly #random: () => number;
  #tries = 0;

  constructor(options: GrowingDelayOptions, random: () => number = Math.random) {
    this.#options = options;
    this.#random = random;
  }

  /** Tries that failed since the last success. */
  get tries(): number {
    return this.#tries;
  }

  /** The wait before the next try, in milliseconds. */
  next(): number {
    const { firstMs, mostMs, jitter } = this.#options;
    const delay = doubled(firstMs, mostMs, this.#tries);
    this.#tries += 1;
    return jitter ? delay * (1 - this.#random() / 4) : delay;
  }

  reset(): void {
    this.#tries = 0;
  }
}

/** `firstMs` doubled `times` times, at most `mostMs`. */
export function doubled(firstMs: number, mostMs: number, times: number): number {
  // 2 ** 1024 is Infinity, which the minimum takes care of.
  return Math.min(mostMs, firstMs * 2 ** times);
}
