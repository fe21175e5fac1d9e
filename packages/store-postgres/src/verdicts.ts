import type { SettleVerdict } from "@venturi/core";
import type { Row } from "./database.ts";

/**
 * The verdicts of one call that settles runs, extends leases or hands claims back. Each is "lost" until a statement says
 * otherwise.
 */
export class Verdicts {
  readonly all: SettleVerdict[];
  /** Places without an answer yet, in order. */
  #open: number[];

  constructor(length: number) {
    this.all = new Array<SettleVerdict>(length).fill("lost");
    this.#open = Array.from({ length }, (_, index) => index);
  }

  /** The elements of a list in the call's order that have no answer yet. */
  pick<T>(list: readonly T[]): readonly T[] {
    return this.#open.length === list.length ? list : this.#open.map((place) => list[place] as T);
  }

  /** Takes the positions (`ord`, from 1) to which a statement over what was open applied. */
  apply(rows: readonly Row[]): void {
    const applied = new Set(rows.map((row) => this.#open[(row["ord"] as number) - 1] as number));
    for (const place of applied) this.all[place] = "applied";
    this.#open = this.#open.filter((place) => !applied.has(place));
  }

  /** Takes a verdict for each place that has no answer yet, in order. */
  judge(found: readonly SettleVerdict[]): void {
    for (const [index, verdict] of found.entries()) this.all[this.#open[index] as number] = verdict;
    this.#open = [];
  }
}
