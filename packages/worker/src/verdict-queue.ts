import type { SettleVerdict } from "@venturi/core";
import { Blame, type Failed, type Tried } from "./blame.ts";
import type { CancelTimer, Clock } from "./clock.ts";
import { doubled } from "./growing-delay.ts";
import { LaterItems } from "./later-items.ts";
import { hasNothingToDoWithItems } from "./refusal.ts";
import type { Trouble } from "./trouble.ts";

/** What one statement takes at most: items, and characters of text. */
const maxBatchItems = 1_000;
const maxBatchText = 1_000_000;

/** The first and the longest wait before an item whose row is locked is tried again, in milliseconds. */
const firstAgainMs = 20;
const mostAgainMs = 1_000;
/** The longest wait before an item that failed is tried again, in milliseconds. */
const mostFailedMs = 30_000;

/** Something to be written about one claim. */
export interface ClaimWrite {
  /** The length of its text in UTF-16 units, so that batches can be kept small enough. */
  readonly textLength: number;
  /** Monotonic instant after which it is not tried again: the lease has ended, and recovery takes over. */
  readonly until: number;
  /** How often it has been tried by itself in vain. */
  tries: number;
}

export interface VerdictQueueOptions<Item extends ClaimWrite> {
  readonly clock: Clock;
  readonly trouble: Trouble;
  /** Sends one statement for the whole batch; resolves with a verdict for each item, in order. */
  readonly send: (batch: readonly Item[], signal: AbortSignal) => Promise<readonly SettleVerdict[]>;
  readonly onVerdict: (item: Item, verdict: Exclude<SettleVerdict, "busy">) => void;
  /**
   * The store refuses this very item, whatever else is written with it. Returns what to write instead; or "again" to keep
   * trying, or "drop". Called once for each item.
   */
  readonly onRefused: (item: Item, error: unknown) => Item | "again" | "drop";
  /**
   * Whether an error counts as a refusal of an item only if the server said so about that item; all other errors are
   * waited out. If not, every error does, except those that concern all items, such as an outage.
   * @defaultValue true
   */
  readonly isPatient?: boolean;
  /** An item was given up at its `until`. */
  readonly onDropped: (item: Item) => void;
  /** A statement has been answered, and everything that follows from its answer has been done. */
  readonly onProgress?: () => void;
}

/**
 * Items that are to be written about claims, each of which is tried until it has its verdict. At most one statement is in
 * flight; what piles up meanwhile goes out with the next, so batches form by themselves. An idle queue sends on the next
 * turn of the event loop.
 *
 * When a batch fails for a reason that concerns all of it, such as an outage, everything waits. Otherwise the batch is
 * split until each item that fails has failed by itself, and {@link Blame} tells whose fault that is.
 */
export class VerdictQueue<Item extends ClaimWrite> {
  readonly #options: VerdictQueueOptions<Item>;
  readonly #abort = new AbortController();
  #waiting: Item[] = [];
  /** Items that wait before they are tried again. */
  readonly #later: LaterItems<Item>;
  readonly #blame: Blame<Item>;
  #unresolved = 0;
  #sending = false;
  #abandoned = false;
  #cancelSoon: CancelTimer | null = null;
  #cancelPause: CancelTimer | null = null;
  #whenEmpty: (() => void)[] = [];

  constructor(options: VerdictQueueOptions<Item>) {
    const { clock, isPatient = true } = options;
    this.#options = options;
    this.#blame = new Blame(clock, isPatient);
    this.#later = new LaterItems(clock, (items) => {
      this.#waiting.push(...items);
      this.#schedule();
    });
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
    this.#later.stop();
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
    const tried: Tried<Item> = { written: 0, failed: [], untried: [] };
    const scout = this.#blame.scoutOf(batch);
    if (scout === null) {
      await this.#write(batch, tried);
    } else {
      const rest = batch.filter((item) => item !== scout);
      await this.#write([scout], tried, rest);
      if (!this.#cancelPause && !this.#abandoned) await this.#write(rest, tried);
    }
    if (!this.#abandoned && tried.failed.length > 0) this.#failed(tried);
  }

  /** Writes a batch, noting in `tried` the items that fail by themselves. If everything has to wait, `rest` waits with it. */
  async #write(
    batch: readonly Item[],
    tried: Tried<Item>,
    rest: readonly Item[] = [],
  ): Promise<void> {
    const { send, trouble } = this.#options;
    let verdicts: readonly SettleVerdict[];
    try {
      verdicts = await send(batch, this.#abort.signal);
    } catch (error) {
      if (this.#abandoned) return;
      const [only] = batch;
      const isKnown = this.#blame.isKnown(error);
      if (isKnown && only !== undefined && batch.length === 1) only.tries += 1;
      if (isKnown || hasNothingToDoWithItems(error))
        this.#pause([...rest, ...batch], trouble.failed(error));
      else if (batch.length > 1) await this.#halve(batch, tried);
      else if (only !== undefined) tried.failed.push({ item: only, error });
      return;
    }
    if (this.#abandoned) return;
    trouble.succeeded();
    this.#blame.succeeded();
    tried.written += batch.length;
    batch.forEach((item, index) => {
      const verdict = verdicts[index] ?? "lost";
      if (verdict === "busy") {
        this.#again(item, mostAgainMs);
      } else {
        this.#resolved();
        this.#options.onVerdict(item, verdict);
      }
    });
  }

  async #halve(batch: readonly Item[], tried: Tried<Item>): Promise<void> {
    const middle = Math.ceil(batch.length / 2);
    for (const half of [batch.slice(0, middle), batch.slice(middle)]) {
      // The first half may have met an outage: then the second waits with it.
      if (this.#cancelPause) this.#waiting = [...half, ...this.#waiting];
      else if (this.#blame.isClear(tried)) tried.untried.push(...half);
      else if (!this.#abandoned) await this.#write(half, tried);
    }
  }

  /** What becomes of the items that failed by themselves. */
  #failed(tried: Tried<Item>): void {
    const { written, failed, untried } = tried;
    const items = failed.map(({ item }) => item);
    if (this.#cancelPause && written === 0) {
      // Cut short by an outage, so nobody knows whether the others fail alike.
      this.#waiting = [...items, ...this.#waiting];
      return;
    }
    // Those that were tried come last, so that others are tried first when this is split again.
    const all = [...untried, ...items];
    switch (this.#blame.judge(tried)) {
      case "circumstances":
        for (const item of items) item.tries += 1;
        this.#pause(all, this.#options.trouble.failed(failed[0]?.error));
        return;
      case "refused-before":
        for (const item of all) this.#again(item, mostFailedMs);
        return;
      case "items":
        this.#refused(failed);
    }
  }

  /** Deals with each item that failed by itself: one that the store refuses is told of, all others are tried again. */
  #refused(failed: readonly Failed<Item>[]): void {
    const { trouble, onRefused } = this.#options;
    const passing = failed.find(({ error }) => this.#blame.isPassing(error));
    if (passing !== undefined) trouble.failed(passing.error);
    for (const each of failed) {
      const { item, error } = each;
      const next = this.#blame.isNews(each) ? onRefused(item, error) : "again";
      if (next === "again") this.#again(item, mostFailedMs);
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

  /** Tries an item again after a wait that grows with its tries, up to `mostMs`; the others go on. */
  #again(item: Item, mostMs: number): void {
    const { clock } = this.#options;
    const now = clock.now();
    if (now >= item.until) {
      this.#drop(item);
      return;
    }
    const latest = Math.max(now + firstAgainMs, item.until);
    const at = Math.min(now + doubled(firstAgainMs, mostMs, item.tries), latest);
    item.tries += 1;
    this.#later.add(item, at);
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
