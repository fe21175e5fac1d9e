import type { JobId, NameOptions, UnsentJob } from "@venturi/core";
import type { EnqueueItem, EnqueueOptions } from "@venturi/queue";
import type { PostgresTransaction } from "@venturi/store-postgres";

/** What the contract calls: a queue, or what does the same by hand. */
export interface Producer {
  enqueue(job: UnsentJob, options?: EnqueueOptions): Promise<JobId>;
  enqueueMany(items: readonly EnqueueItem[]): Promise<readonly JobId[]>;
}

/** A transaction that a library began and will end. */
export interface DriverTransaction {
  /** A producer inside of it; made anew with every call, as an application would. */
  within(): Producer;
  /** As a store takes it; null where there is no library. */
  readonly store: PostgresTransaction | null;
  /** Runs a statement without parameters by the library's own means. */
  run(sql: string): Promise<unknown>;
  /** A savepoint, the library's own where it has them: undone when `work` rejects. */
  nested<T>(work: (inner: Producer) => Promise<T>): Promise<T>;
}

/** A savepoint by hand. */
export async function savepoint<T>(
  run: (sql: string) => Promise<unknown>,
  work: () => Promise<T>,
): Promise<T> {
  await run("savepoint point");
  try {
    return await work();
  } catch (error) {
    await run("rollback to savepoint point");
    throw error;
  }
}

/** A library that runs SQL, with a connection to the database of the test. */
export interface Driver {
  readonly producer: Producer;
  /** The same for the queue of another prefix or schema. */
  producerOf(names: NameOptions): Producer;
  /** What queues are made over, which is outside of every transaction. */
  readonly outside: PostgresTransaction;
  /** The library's own transaction: committed when `work` resolves, rolled back when it rejects. */
  transaction<T>(work: (tx: DriverTransaction) => Promise<T>): Promise<T>;
  close(): Promise<unknown>;
}

/** How the contract reaches a database through a library. */
export interface DriverKind {
  readonly name: string;
  /** Errors come as the server's, not as a queue's. */
  readonly isBare?: boolean;
  connect(url: string): Driver;
}
