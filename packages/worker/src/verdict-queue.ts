import type { SettleVerdict } from "@venturi/core";
import type { CancelTimer, Clock } from "./clock.ts";
import { FailedAlike } from "./failed-alike.ts";
import { doubled } from "./growing-delay.ts";
import { LaterItems } from "./later-items.ts";
import { hasNothingToDoWithItems, isAboutValues, isRefusal, natureOf } from "./refusal.ts";
import type { Trouble } from "./trouble.ts";

/** What one statement takes at most. */
const maxBatchItems = 1_000;
const maxBatchText = 1_000_000;

/** Waits before an item is tried again by itself, in milliseconds. */
const firstAgainMs = 20;
const mostAgainMs = 1_000;
/** The longest such wait of what failed, in milliseconds: the server has to be asked, but not often. */
const mostFailedMs = 30_000;

/** So many items that fail alike, with nothing written yet, are not to blame. */
const alikeItems = 3;
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
  /** The store refuses this very item for good; returns what to write instead, or what to do with it. Once an item. */
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
interface Failed<Item> {
  readonly item: Item;
  readonly error: unknown;
}

/** What has come of a batch so far. */
interface Sent<Item> {
  /** How many items the store took. */
  written: number;
  readonly failed: Failed<Item>[];
  /** Items that were not tried by themselves any more, since all before them failed alike. */
  readonly untried: Item[];
}

/**
 * Writes about claims until each has its verdict. At most one statement is in flight; what piles up meanwhile goes
 * out with the next, so batches form by themselves. An idle queue sends on the next turn of the event loop.
 */
export class VerdictQueue<Item extends ClaimWrite> {
  readonly #options: VerdictQueueOptions<Item>;
  readonly #abort = new AbortController();
  #waiting: Item[] = [];
  /** Items that are tried again by themselves. */
  readonly #later: LaterItems<Item>;
  /** Items whose refusal has been told of. */
  readonly #told = new WeakSet<Item>();
  readonly #alike: FailedAlike;
  #unresolved = 0;
  #sending = false;
  #abandoned = false;
  #cancelSoon: CancelTimer | null = null;
  #cancelPause: CancelTimer | null = null;
  #whenEmpty: (() => void)[] = [];

  constructor(options: VerdictQueueOptions<Item>) {
    const { clock } = options;
    this.#options = options;
    this.#alike = new FailedAlike(clock);
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
    const sent: Sent<Item> = { written: 0, failed: [], untried: [] };
    const scout = this.#scoutOf(batch);
    if (scout === null) {
      await this.#write(batch, sent);
    } else {
      const rest = batch.filter((item) => item !== scout);
      await this.#write([scout], sent, rest);
      if (!this.#cancelPause && !this.#abandoned) await this.#write(rest, sent);
    }
    if (!this.#abandoned && sent.failed.length > 0) this.#judge(sent);
  }

  /**
   * While items fail alike one goes before the others, so that these need neither fail with it nor be split: of those
   * that were tried least the newest, since it may be that only what came with those that were tried fails.
   */
  #scoutOf(batch: readonly Item[]): Item | null {
    if (batch.length < 2 || !this.#alike.isRecent) return null;
    return batch.reduce((least, item) => (item.tries <= least.tries ? item : least));
  }

  /** Writes what can be written now, and notes which items fail by themselves; if all is to wait, `rest` does too. */
  async #write(
    batch: readonly Item[],
    sent: Sent<Item>,
    rest: readonly Item[] = [],
  ): Promise<void> {
    const { send, trouble } = this.#options;
    let verdicts: readonly SettleVerdict[];
    try {
      verdicts = await send(batch, this.#abort.signal);
    } catch (error) {
      if (this.#abandoned) return;
      const [only] = batch;
      const isKnown = this.#alike.isKnown(error);
      if (isKnown && only !== undefined && batch.length === 1) only.tries += 1;
      if (isKnown || hasNothingToDoWithItems(error))
        this.#pause([...rest, ...batch], trouble.failed(error));
      else if (batch.length > 1) await this.#halve(batch, sent);
      else if (only !== undefined) sent.failed.push({ item: only, error });
      return;
    }
    if (this.#abandoned) return;
    trouble.succeeded();
    this.#alike.end();
    sent.written += batch.length;
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

  async #halve(batch: readonly Item[], sent: Sent<Item>): Promise<void> {
    const middle = Math.ceil(batch.length / 2);
    for (const half of [batch.slice(0, middle), batch.slice(middle)]) {
      // The first half may have met an outage: then the second waits with it.
      if (this.#cancelPause) this.#waiting = [...half, ...this.#waiting];
      else if (sent.failed.length >= alikeItems && this.#isAlike(sent)) sent.untried.push(...half);
      else if (!this.#abandoned) await this.#write(half, sent);
    }
  }

  /** What becomes of the items that failed by themselves. */
  #judge(sent: Sent<Item>): void {
    const { trouble, onRefused, isPatient = true } = this.#options;
    const { written, failed, untried } = sent;
    const items = failed.map(({ item }) => item);
    const [{ error: firstError }] = failed as [Failed<Item>];
    if (this.#cancelPause && written === 0) {
      // Cut short by an outage, so nobody knows whether the others fail alike.
      this.#waiting = [...items, ...this.#waiting];
      return;
    }
    if (this.#isAlike(sent)) {
      const all = [...untried, ...items];
      if (all.every((item) => this.#told.has(item))) {
        // Each of them has been refused while others were not, so these need not wait with them.
        for (const item of all) this.#again(item, mostFailedMs);
        return;
      }
      if (failed.length > 1) this.#alike.found(firstError);
      for (const item of items) item.tries += 1;
      // Those that were tried come last, so that others are tried when this is split once more.
      this.#pause(all, trouble.failed(firstError));
      return;
    }
    const passing = failed.find(({ error }) => isPatient && !isRefusal(error));
    if (passing !== undefined) trouble.failed(passing.error);
    for (const { item, error } of failed) {
      const isNews = !(isPatient && (this.#told.has(item) || !isRefusal(error)));
      if (isNews) this.#told.add(item);
      const next = isNews ? onRefused(item, error) : "again";
      if (next === "again") this.#again(item, mostFailedMs);
      else if (next === "drop") this.#resolved();
      else this.#waiting = [next, ...this.#waiting];
    }
  }

  /** Whether all items that were tried failed for what is no fault of theirs, as far as anybody can tell. */
  #isAlike({ written, failed }: Sent<Item>): boolean {
    const { isPatient = true } = this.#options;
    const [first] = failed;
    if (!isPatient || written > 0 || first === undefined) return false;
    if (failed.length === 1) return !isRefusal(first.error);
    const nature = natureOf(first.error);
    return (
      failed.every(({ error }) => natureOf(error) === nature) &&
      // A value that cannot be stored is its own item's, however many have one; unless no substitute can be stored.
      (!isAboutValues(first.error) || failed.every(({ item }) => this.#told.has(item)))
    );
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

  /** This item alone waits, at most so many milliseconds; the others go on. */
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
