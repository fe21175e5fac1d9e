import type { MaybePromise, Notifier, Store } from "@venturi/core";

/** A store's clock in the hands of a test. It stands still until it is moved. */
export interface ContractClock {
  /** Epoch milliseconds. */
  now(): MaybePromise<number>;
  /** Moves it on by whole milliseconds. */
  advance(ms: number): MaybePromise<unknown>;
}

/** A store with nothing in it, and what its author can do to it beside the ports. */
export interface ContractSubject<Tx = never> {
  readonly store: Store<Tx> & Partial<Notifier>;
  /** Without it nothing that takes time is checked. */
  readonly clock?: ContractClock;
  /** Runs work in a transaction that is committed when the work resolves and rolled back when it rejects. */
  readonly transaction?: <T>(work: (tx: Tx) => Promise<T>) => Promise<T>;
  /** Keeps a kind from being claimed, where the store can. */
  readonly pauseKind?: (kind: string) => MaybePromise<void>;
  /** Called when the case has ended, however it did. */
  readonly close?: () => MaybePromise<void>;
}

/** What a case cannot be run without. */
export type ContractNeed = "clock" | "transactions" | "notifications" | "pauseKind";

export interface ContractCase {
  readonly topic: string;
  /** The statement that it checks. */
  readonly name: string;
  /** What it cannot be run without. */
  readonly needs: readonly ContractNeed[];
  /**
   * Makes a store and checks the statement on it; rejects where it does not hold. Where the store cannot do what the
   * case needs, it calls `context.skip` with the reason, as test runners take it, and resolves to that reason.
   */
  run(context?: { skip?: ((reason: string) => unknown) | undefined }): Promise<string | null>;
}

/** What is missing to run a case; null: nothing. */
export function missingNeed<Tx>(
  subject: ContractSubject<Tx>,
  needs: readonly ContractNeed[],
): string | null {
  const { capabilities, listen } = subject.store;
  for (const need of needs) {
    if (need === "clock" && subject.clock === undefined) return "no clock that a test can move";
    if (need === "pauseKind" && subject.pauseKind === undefined) return "kinds cannot be paused";
    if (need === "transactions") {
      if (!capabilities.transactions) return "the store takes part in no transactions";
      if (subject.transaction === undefined)
        throw new Error("the store has transactions: give the contract `transaction` to open one");
    }
    if (need === "notifications") {
      if (!capabilities.notifications) return "the store sends no notifications";
      if (listen === undefined) throw new Error("capabilities.notifications, but no listen");
    }
  }
  return null;
}
