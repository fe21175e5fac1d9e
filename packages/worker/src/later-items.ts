import type { CancelTimer, Clock } from "./clock.ts";

/** Items that are each to be tried again at a moment of their own, by one timer for all. */
export class LaterItems<Item> {
  readonly #clock: Clock;
  readonly #onDue: (items: readonly Item[]) => void;
  #items: { readonly item: Item; readonly at: number }[] = [];
  #cancel: CancelTimer | null = null;

  constructor(clock: Clock, onDue: (items: readonly Item[]) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** @param at - On the monotonic clock. */
  add(item: Item, at: number): void {
    this.#items.push({ item, at });
    this.#arm();
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }

  #arm(): void {
    this.stop();
    if (this.#items.length === 0) return;
    const earliest = this.#items.reduce(
      (least, { at }) => Math.min(least, at),
      Number.POSITIVE_INFINITY,
    );
    this.#cancel = this.#clock.after(earliest - this.#clock.now(), () => {
      const now = this.#clock.now();
      const due = this.#items.filter(({ at }) => at <= now);
      this.#items = this.#items.filter(({ at }) => at > now);
      this.#arm();
      if (due.length > 0) this.#onDue(due.map(({ item }) => item));
    });
  }
}
