import type { Clock } from "./clock.ts";
import { FailedAlike } from "./failed-alike.ts";
import { isAboutValues, isRefusal, natureOf } from "./refusal.ts";

/** So many items that fail alike, with nothing written yet, are not to blame. */
const alikeItems = 3;

/** An item that failed by itself. */
export interface Failed<Item> {
  readonly item: Item;
  readonly error: unknown;
}

/** What has come of a batch so far, which is split until each item that fails has failed by itself. */
export interface Tried<Item> {
  /** How many items the store took. */
  written: number;
  readonly failed: Failed<Item>[];
  /** Items that were not tried by themselves any more, since all before them failed alike. */
  readonly untried: Item[];
}

/**
 * Who is to blame for what failed of a batch. `circumstances`: they would refuse any item. `refused-before`: the items
 * again, as far as anybody can tell, since each has been refused while others were not. `items`: each item its own.
 */
export type Culprit = "circumstances" | "refused-before" | "items";

/** Tells an item that the store refuses from circumstances in which it would refuse any, by how items fail. */
export class Blame<Item extends { readonly tries: number }> {
  readonly #isPatient: boolean;
  readonly #alike: FailedAlike;
  /** Items whose refusal has been told of. */
  readonly #told = new WeakSet<Item>();

  /**
   * @param isPatient - Whether only what the server said about an item counts as a refusal, and all else passes; if not,
   * everything counts as one.
   */
  constructor(clock: Clock, isPatient: boolean) {
    this.#isPatient = isPatient;
    this.#alike = new FailedAlike(clock);
  }

  /**
   * While items fail alike one goes before the others, so that these need neither fail with it nor be split: of those
   * that were tried least the newest, since it may be that only what came with those that were tried fails.
   */
  scoutOf(batch: readonly Item[]): Item | null {
    if (batch.length < 2 || !this.#alike.isRecent) return null;
    return batch.reduce((least, item) => (item.tries <= least.tries ? item : least));
  }

  /** A statement was carried out: if items failed alike, that is over. */
  succeeded(): void {
    this.#alike.end();
  }

  /** Whether a statement failed as those items did that failed alike; if not, that is over. */
  isKnown(error: unknown): boolean {
    return this.#alike.isKnown(error);
  }

  /** Whether so many have failed alike that the rest need not be tried. */
  isClear(tried: Tried<Item>): boolean {
    return tried.failed.length >= alikeItems && this.#isAlike(tried);
  }

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

  /** Whether an error says nothing about its item, so that it may be gone when that is tried again. */
  isPassing(error: unknown): boolean {
    return this.#isPatient && !isRefusal(error);
  }

  /** Whether the store refuses this very item and nobody has been told of it; from now on somebody has. */
  isNews({ item, error }: Failed<Item>): boolean {
    if (this.isPassing(error) || (this.#isPatient && this.#told.has(item))) return false;
    this.#told.add(item);
    return true;
  }

  /** Whether all items that were tried failed for what is no fault of theirs, as far as anybody can tell. */
  #isAlike({ written, failed }: Tried<Item>): boolean {
    const [first] = failed;
    if (!this.#isPatient || written > 0 || first === undefined) return false;
    if (failed.length === 1) return !isRefusal(first.error);
    const nature = natureOf(first.error);
    return (
      failed.every(({ error }) => natureOf(error) === nature) &&
      // A value that cannot be stored is its own item's, however many have one; unless no substitute can be stored.
      (!isAboutValues(first.error) || failed.every(({ item }) => this.#told.has(item)))
    );
  }
}
