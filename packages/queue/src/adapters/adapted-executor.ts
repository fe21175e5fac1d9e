import type { SqlExecutor } from "../sql-executor.ts";

/** A library's connection or transaction as something that a queue enqueues through. */
export interface AdaptedExecutor extends SqlExecutor {
  /** Whether it is one of the library's transactions, which the library will end. */
  readonly isTransaction: boolean;
  /** Whether statements may be sent at the same time, each on a connection of its own. */
  readonly isPool: boolean;
  /** What was adapted: statements over the same take turns, however often it is adapted. */
  readonly handle: object;
}
