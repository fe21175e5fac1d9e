import { invalidArgument } from "@venturi/core";
import { type Backend, mayBeOneJobs, transactionLane } from "./backend.ts";
import { EnqueueLane } from "./enqueue-lane.ts";
import { executorRunner, isExecutor } from "./executor-runner.ts";
import { isKyselyLike, kyselyRunner } from "./kysely-runner.ts";
import { type QueueOptions, resolveQueueOptions } from "./options.ts";
import { isPgLike, pgRunner } from "./pg-runner.ts";
import { guardConnection } from "./pool-guard.ts";
import { repeatConflicts } from "./repeat.ts";
import type { Runner } from "./sql-executor.ts";
import { sqlSender } from "./sql-sender.ts";

/** Enqueues through whatever runs SQL; throws `invalid-argument` for what does not. */
export function sqlBackend(producer: unknown, options: QueueOptions | undefined): Backend {
  const { names, preparedStatements, logger } = resolveQueueOptions(options);
  const runner = toRunner(producer, preparedStatements, "producer");
  if (isPgLike(producer)) guardConnection(producer, logger);
  const send = sqlSender(runner, names);
  // A client may be handed over with a transaction of its owner's open.
  const isFree = () => !runner.isInTransaction();
  const inner = new WeakMap<object, EnqueueLane>();
  return {
    lane: new EnqueueLane({
      send: (jobs) => (isFree() ? repeatConflicts(() => send(jobs)) : send(jobs)),
      coalesces: isFree,
      isolates: (error) => isFree() && mayBeOneJobs(error),
    }),
    laneWithin(tx) {
      const txRunner = toRunner(tx, preparedStatements, "tx");
      refuseOutside(tx);
      // One lane a connection, which runs one statement at a time however often it is passed.
      const lane = inner.get(tx as object) ?? transactionLane(sqlSender(txRunner, names));
      inner.set(tx as object, lane);
      return lane;
    },
  };
}

/** What would take any connection it likes, and so store the job whatever becomes of the transaction. */
function refuseOutside(tx: unknown): void {
  const { isTransaction, totalCount } = tx as Readonly<Record<string, unknown>>;
  if (isPgLike(tx) && typeof totalCount === "number") {
    throw invalidArgument(
      "tx",
      "is a pool, and a transaction lives on one connection",
      "pass the client on which you began it",
    );
  }
  if (isKyselyLike(tx) && isTransaction === false) {
    throw invalidArgument(
      "tx",
      "is a Kysely instance outside of its transactions",
      "pass the trx of db.transaction().execute((trx) => …)",
    );
  }
}

/** Recognised by shape, so that it does not matter which copy of `pg` or Kysely made it. */
function toRunner(value: unknown, preparedStatements: boolean, argument: string): Runner {
  if (isKyselyLike(value)) return kyselyRunner(value);
  if (isPgLike(value)) return pgRunner(value, preparedStatements);
  if (isExecutor(value)) return executorRunner(value);
  throw invalidArgument(
    argument,
    "is nothing that a queue can enqueue through",
    "pass a pg Pool, Client or PoolClient, a Kysely instance or transaction, a store, or { query(text, params) }",
  );
}
