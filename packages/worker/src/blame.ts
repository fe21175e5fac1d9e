import type { Clock } from "./clock.ts";
import { FailedAlike } from "./failed-alike.ts";
import { isAboutValues, isRefusal, natureOf } from "./refusal.ts";

/** When this many items fail alike and nothing has been written, the items are not to blame. */
const alikeItems = 3;

/** An item that failed by itself. */
export interface Failed<Item> {
  readonly item: Item;
  readonly error: unknown;
}

/** What has become so far of a batch that is being split until each failing item has failed by itself. */
export interface Tried<Item> {
  /** How many items have been written. */
  written: number;
  readonly failed: Failed<Item>[];
  /** Items that were not tried by themselves, since all before them had failed alike. */
  readonly untried: Item[];
}

/**
 * What is to blame for the failures of a batch.
 *
 * - `items`: each failed item itself.
 * - `circumstances`: something that would make any item fail.
 * - `refused-before`: the items again, most likely: all of them have been refused before, while others were not.
 */
export type Culprit = "circumstances" | "refused-before" | "items";

/** Tells whether an item is at fault, or the circumstances, by comparing how items fail. */
export class Blame<Item extends { readonly tries: number }> {
  readonly #isPatient: boolean;
  readonly #alike: FailedAlike;
  /** Items whose refusal has been reported. */
  readonly #told = new WeakSet<Item>();

  /** @param isPatient - Whether only what the server said about an item counts as its refusal; if not, every error does. */
  constructor(clock: Clock, isPatient: boolean) {
    this.#isPatient = isPatient;
    this.#alike = new FailedAlike(clock);
  }

  /**
   * The item to try before the others while items keep failing alike, so that the others need neither fail with it nor be
   * split. It is the newest of those that were tried least: perhaps only the older ones fail. Null: try all together.
   */
  scoutOf(batch: readonly Item[]): Item | null {
    if (batch.length < 2 || !this.#alike.isRecent) return null;
    return batch.reduce((least, item) => (item.tries <= least.tries ? item : least));
  }

  /** A statement was carried out: items no longer fail alike. */
  succeeded(): void {
    this.#alike.end();
  }

  /** Whether a statement failed in the way in which items keep failing alike. If not, they no longer do. */
  isKnown(error: unknown): boolean {
    return this.#alike.isKnown(error);
  }

  /** Whether so many items have failed alike that the rest need not be tried. */
  isClear(tried: Tried<Item>): boolean {
    return tried.failed.length >= alikeItems && this.#isAlike(tried);
  }

  /** What is to blame, once the batch has been split as far as needed. */
  judge(tried: Tried<Item>): Culprit {
    const { failed, untried } = tried;
    const [first] = failed;
    if (first === undefined || !this.#isAlike(tried)) return "items";
    const wasTold = (item: Item) => this.#told.has(item);
    if (untried.every(wasTold) && failed.every(({ item }) => wasTold(item)))
      return "refused-before";
    if (failed.length > 1) this.#alike.found(first.error);
    return "circumstances";
  }

  /** Whether an error says nothing about its item, which may succeed when it is tried again. */
  isPassing(error: unknown): boolean {
    return this.#isPatient && !isRefusal(error);
  }

  /** Whether the store refuses this very item and that has not been reported yet; it counts as reported from now on. */
  isNews({ item, error }: Failed<Item>): boolean {
    if (this.isPassing(error) || (this.#isPatient && this.#told.has(item))) return false;
    this.#told.add(item);
    return true;
  }

  /** Whether all items that were tried failed for the same reason, which seems to be no fault of theirs. */
  #isAlike({ written, failed }: Tried<Item>): boolean {
    const [first] = failed;
    if (!this.#isPatient || written > 0 || first === undefined) return false;
    if (failed.length === 1) return !isRefusal(first.error);
    const nature = natureOf(first.error);
    return (
      failed.every(({ error }) => natureOf(error) === nature) &&
      // A value that cannot be stored is the item's own fault, however many have one; unless no substitute can be stored.
      (!isAboutValues(first.error) || failed.every(({ item }) => this.#told.has(item)))
    );
  }
}
