import { guardConnection, hearClient, invalidArgument, refuseBinary, show } from "@venturi/core";
import type { AdaptedExecutor } from "./adapters/adapted-executor.ts";
import { type Backend, Lanes, mayBeOneJobs, transactionLanes } from "./backend.ts";
import { EnqueueLane } from "./enqueue-lane.ts";
import { executorRunner, isExecutor } from "./executor-runner.ts";
import { isKyselyLike, kyselyRunner } from "./kysely-runner.ts";
import { mergeAndSend, mergeUntilSent } from "./merging.ts";
import { type QueueOptions, resolveQueueOptions } from "./options.ts";
import { isPgLike, pgRunner } from "./pg-runner.ts";
import type { Runner } from "./sql-executor.ts";
import { sqlPort } from "./sql-port.ts";

/** Enqueues through whatever runs SQL; throws `invalid-argument` for what does not. */
export function sqlBackend(producer: unknown, options: QueueOptions | undefined): Backend {
  const { names, preparedStatements, logger } = resolveQueueOptions(options);
  const runner = toRunner(producer, preparedStatements, "producer");
  if (isPgLike(producer)) guardConnection(producer, logger);
  const port = sqlPort(runner, names, logger);
  // A client may be handed over with a transaction of its owner's open.
  const isFree = () => !runner.isInTransaction();
  const inner = new WeakMap<object, Lanes>();
  const lane = () =>
    new EnqueueLane({
      send: (jobs) => (isFree() ? mergeUntilSent(port, jobs) : mergeAndSend(port, jobs)),
      coalesces: isFree,
      isolates: (error) => isFree() && mayBeOneJobs(error),
    });
  return {
    lanes: isPool(producer) ? Lanes.ofPool(lane) : Lanes.ofOne(lane()),
    lanesWithin(tx) {
      const txRunner = toRunner(tx, preparedStatements, "tx");
      refuseOutside(tx);
      if (isPgLike(tx)) hearClient(tx);
      // One lane a connection, which runs one statement at a time however often it is passed.
      const txPort = sqlPort(txRunner, names, logger);
      const handle = handleOf(tx as object);
      const lanes = inner.get(handle) ?? transactionLanes((jobs) => mergeAndSend(txPort, jobs));
      inner.set(handle, lanes);
      return lanes;
    },
  };
}

/** Whether statements may be sent at the same time. */
function isPool(producer: unknown): boolean {
  if (isKyselyLike(producer)) {
    return (producer as { readonly isTransaction?: unknown }).isTransaction === false;
  }
  if (isAdapted(producer)) return producer.isPool;
  return (
    isPgLike(producer) &&
    typeof (producer as { readonly totalCount?: unknown }).totalCount === "number"
  );
}

/** What an adapter made of a library's connection, by its shape. */
function isAdapted(value: unknown): value is AdaptedExecutor {
  return isExecutor(value) && !isPgLike(value) && "handle" in value && "isPool" in value;
}

/** Adapters make an executor anew for each call; what they adapted stays the same. */
function handleOf(tx: object): object {
  return isAdapted(tx) ? tx.handle : tx;
}

/** What would take any connection it likes, and so store the job whatever becomes of the transaction. */
function refuseOutside(tx: unknown): void {
  const { isTransaction } = tx as Readonly<Record<string, unknown>>;
  if (isPgLike(tx) && isPool(tx)) {
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
  if (isExecutor(tx) && !isPgLike(tx) && isTransaction === false) {
    throw invalidArgument(
      "tx",
      "is outside of a transaction",
      "adapt what the library hands to the callback of its transaction",
    );
  }
}

/** Recognised by shape, so that it does not matter which copy of `pg` or Kysely made it. */
function toRunner(value: unknown, preparedStatements: boolean, argument: string): Runner {
  if (isKyselyLike(value)) return kyselyRunner(value);
  if (isPgLike(value)) {
    refuseBinary(argument, value);
    return pgRunner(value, preparedStatements);
  }
  if (isExecutor(value)) return executorRunner(value);
  const transaction =
    "pass the pg client on which you began it, a Kysely transaction, that of another library through its adapter, as in within(adapters.drizzle(tx)), or { query(text, params) }";
  const anything =
    "pass a pg Pool, Client or PoolClient, a Kysely instance or transaction, a store, what an adapter of @venturi/queue/adapters makes, or { query(text, params) }";
  throw invalidArgument(
    argument,
    // Not the text itself: it may be a connection string.
    `is nothing that a queue can enqueue through (got ${typeof value === "string" ? "a string" : show(value)})`,
    argument === "tx" ? transaction : anything,
  );
}
