import type { SettleVerdict } from "@venturi/core";
import type { CancelTimer, Clock } from "./clock.ts";
import { doubled } from "./growing-delay.ts";
import { hasNothingToDoWithItems, isRefusal } from "./refusal.ts";
import type { Trouble } from "./trouble.ts";

/** What one statement takes at most. */
const maxBatchItems = 1_000;
const maxBatchText = 1_000_000;

/** Waits before an item is tried again by itself, in milliseconds. */
const firstAgainMs = 20;
const mostAgainMs = 1_000;

/** Something to be written about one claim. */
export interface ClaimWrite {
  /** Length of the text it carries, for batches of bounded size. */
  readonly textLength: number;
  /** Monotonic instant after which trying again is pointless: the lease has ended, recovery takes over. */
  readonly until: number;
  /** How often it was tried in vain by itself. */
  tries: number;
}

export interface VerdictQueueOptions<Item extends ClaimWrite> {
  readonly clock: Clock;
  readonly trouble: Trouble;
  /** One statement for the whole batch; verdicts in its order. */
  readonly send: (batch: readonly Item[], signal: AbortSignal) => Promise<readonly SettleVerdict[]>;
  readonly onVerdict: (item: Item, verdict: Exclude<SettleVerdict, "busy">) => void;
  /** The store refuses this very item for good; returns what to write instead, or what to do with it. */
  readonly onRefused: (item: Item, error: unknown) => Item | "again" | "drop";
  /**
   * Whether only what the server said about an item counts as a refusal, and all else is waited out; if not, whatever
   * trying again at once does not mend counts as one.
   * @defaultValue true
   */
  readonly isPatient?: boolean;
  /** Given up at its `until`. */
  readonly onDropped: (item: Item) => void;
  /** The statement in flight has returned and nothing is left over from it. */
  readonly onProgress?: () => void;
}

/** An item that failed by itself. */
interface Refused<Item> {
  readonly item: Item;
  readonly error: unknown;
}

/**
 * Writes about claims until each has its verdict. At most one statement is in flight; what piles up meanwhile goes
 * out with the next, so batches form by themselves. An idle queue sends on the next turn of the event loop.
 */
export class VerdictQueue<Item extends ClaimWrite> {
  readonly #options: VerdictQueueOptions<Item>;
  readonly #abort = new AbortController();
  #waiting: Item[] = [];
  /** Items that are tried again by themselves, each not before `at`. */
  #later: { readonly item: Item; readonly at: number }[] = [];
  #unresolved = 0;
  #sending = false;
  #abandoned = false;
  #cancelSoon: CancelTimer | null = null;
  #cancelPause: CancelTimer | null = null;
  #cancelLater: CancelTimer | null = null;
  #whenEmpty: (() => void)[] = [];

  constructor(options: VerdictQueueOptions<Item>) {
    this.#options = options;
  }

  /** Items without a final verdict. */
  get size(): number {
    return this.#unresolved;
  }

  add(item: Item): void {
    this.#unresolved += 1;
    this.#waiting.push(item);
    this.#schedule();
  }

  /** Resolves when every item has its verdict or was dropped. */
  empty(): Promise<void> {
    if (this.#unresolved === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenEmpty.push(resolve));
  }

  /** Ends the queue where it stands: no further statement, no timer, no callback. */
  abandon(): void {
    this.#abandoned = true;
    this.#cancelSoon?.();
    this.#cancelPause?.();
    this.#cancelLater?.();
    this.#abort.abort();
  }

  #schedule(): void {
    if (this.#cancelSoon || this.#sending || this.#cancelPause || this.#abandoned) return;
    this.#cancelSoon = this.#options.clock.soon(() => {
      this.#cancelSoon = null;
      void this.#flush();
    });
  }

  async #flush(): Promise<void> {
    this.#sending = true;
    while (this.#waiting.length > 0 && !this.#cancelPause && !this.#abandoned) {
      await this.#send(this.#take());
      if (!this.#abandoned) this.#options.onProgress?.();
    }
    this.#sending = false;
  }

  #take(): Item[] {
    let count = 0;
    let text = 0;
    for (const item of this.#waiting) {
      text += item.textLength;
      if (count === maxBatchItems || (count > 0 && text > maxBatchText)) break;
      count += 1;
    }
    if (count < this.#waiting.length) return this.#waiting.splice(0, count);
    const all = this.#waiting;
    this.#waiting = [];
    return all;
  }

  async #send(batch: readonly Item[]): Promise<void> {
    const refused: Refused<Item>[] = [];
    await this.#write(batch, refused);
    if (!this.#abandoned && refused.length > 0) this.#judge(batch, refused);
  }

  /** Writes what can be written now, and notes which items fail by themselves. */
  async #write(batch: readonly Item[], refused: Refused<Item>[]): Promise<void> {
    const { send, trouble } = this.#options;
    let verdicts: readonly SettleVerdict[];
    try {
      verdicts = await send(batch, this.#abort.signal);
    } catch (error) {
      if (this.#abandoned) return;
      const [only] = batch;
      if (hasNothingToDoWithItems(error)) this.#pause(batch, trouble.failed(error));
      else if (batch.length > 1) await this.#halve(batch, refused);
      else if (only !== undefined) refused.push({ item: only, error });
      return;
    }
    if (this.#abandoned) return;
    trouble.succeeded();
    batch.forEach((item, index) => {
      const verdict = verdicts[index] ?? "lost";
      if (verdict === "busy") {
        this.#again(item);
      } else {
        this.#resolved();
        this.#options.onVerdict(item, verdict);
      }
    });
  }

  async #halve(batch: readonly Item[], refused: Refused<Item>[]): Promise<void> {
    const middle = Math.ceil(batch.length / 2);
    for (const half of [batch.slice(0, middle), batch.slice(middle)]) {
      // The first half may have met an outage: then the second waits with it.
      if (this.#cancelPause) this.#waiting = [...half, ...this.#waiting];
      else if (!this.#abandoned) await this.#write(half, refused);
    }
  }

  /** What becomes of the items that failed by themselves. */
  #judge(batch: readonly Item[], refused: readonly Refused<Item>[]): void {
    const { isPatient = true, trouble, onRefused } = this.#options;
    const [first] = refused;
    if (isPatient && batch.length === 1 && first !== undefined && !isRefusal(first.error)) {
      // Alone it cannot be told from trouble that has nothing to do with it.
      this.#pause(batch, trouble.failed(first.error));
      return;
    }
    for (const { item, error } of refused) {
      const next = isPatient && !isRefusal(error) ? "again" : onRefused(item, error);
      if (next === "again") this.#again(item);
      else if (next === "drop") this.#resolved();
      else this.#waiting = [next, ...this.#waiting];
    }
  }

  /** After an error that has nothing to do with the items: everything waits. */
  #pause(batch: readonly Item[], ms: number): void {
    const now = this.#options.clock.now();
    const kept: Item[] = [];
    for (const item of batch) {
      if (now < item.until) kept.push(item);
      else this.#drop(item);
    }
    this.#waiting = kept.length > 0 ? [...kept, ...this.#waiting] : this.#waiting;
    this.#cancelPause = this.#options.clock.after(ms, () => {
      this.#cancelPause = null;
      this.#schedule();
    });
  }

  /** This item alone waits, the others go on. */
  #again(item: Item): void {
    const { clock } = this.#options;
    const now = clock.now();
    if (now >= item.until) {
      this.#drop(item);
      return;
    }
    const at = now + doubled(firstAgainMs, mostAgainMs, item.tries);
    item.tries += 1;
    this.#later.push({ item, at });
    this.#armLater();
  }

  #armLater(): void {
    this.#cancelLater?.();
    this.#cancelLater = null;
    if (this.#later.length === 0) return;
    const { clock } = this.#options;
    const earliest = this.#later.reduce(
      (least, { at }) => Math.min(least, at),
      Number.POSITIVE_INFINITY,
    );
    this.#cancelLater = clock.after(earliest - clock.now(), () => {
      this.#cancelLater = null;
      const now = clock.now();
      for (const { item, at } of this.#later) if (at <= now) this.#waiting.push(item);
      this.#later = this.#later.filter(({ at }) => at > now);
      this.#armLater();
      if (this.#waiting.length > 0) this.#schedule();
    });
  }

  #drop(item: Item): void {
    this.#resolved();
    this.#options.onDropped(item);
  }

  #resolved(): void {
    this.#unresolved -= 1;
    if (this.#unresolved > 0) return;
    const waiters = this.#whenEmpty;
    this.#whenEmpty = [];
    for (const resolve of waiters) resolve();
  }
}
