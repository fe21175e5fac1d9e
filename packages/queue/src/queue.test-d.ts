import type { JobId, JobPage, JobRecord, JournalEntry, ProducerStore, Store } from "@venturi/core";
import type { PostgresStore, PostgresTransaction } from "@venturi/store-postgres";
import { Kysely, PostgresDialect, type Transaction } from "kysely";
import type pg from "pg";
import { describe, expectTypeOf, it } from "vitest";
import { type OperatorQueue, Queue, type TransactionQueue } from "./queue.ts";
import { Count, SendEmail } from "./testing/tasks.ts";

declare const pool: pg.Pool;
declare const client: pg.Client;
declare const pooled: pg.PoolClient;
declare const store: PostgresStore;
declare const anyStore: Store;
declare const producer: ProducerStore;
declare const trx: Transaction<{ users: { id: number } }>;

describe("a queue", () => {
  it("is made over whatever runs SQL", () => {
    const db = new Kysely<{ users: { id: number } }>({ dialect: new PostgresDialect({ pool }) });
    for (const queue of [
      new Queue(pool),
      new Queue(client),
      new Queue(pooled),
      new Queue(db),
      new Queue(trx),
      new Queue({ query: async (_text: string, _params: unknown[]) => ({ rows: [] }) }),
      new Queue(producer),
      new Queue(pool, { prefix: "a", schema: "b", preparedStatements: false }),
    ]) {
      expectTypeOf(queue).toEqualTypeOf<Queue>();
    }
  });

  it("has an operator's verbs over a full store only", () => {
    expectTypeOf(new Queue(store)).toEqualTypeOf<OperatorQueue<PostgresTransaction>>();
    expectTypeOf(new Queue(anyStore)).toEqualTypeOf<OperatorQueue>();
    const logged = new Queue(store, { logger: console });
    expectTypeOf(logged).toEqualTypeOf<OperatorQueue<PostgresTransaction>>();
    const queue = new Queue(store);
    expectTypeOf(queue.job).returns.resolves.toEqualTypeOf<JobRecord | null>();
    expectTypeOf(queue.jobs).returns.resolves.toEqualTypeOf<JobPage>();
    expectTypeOf(queue.journal).returns.resolves.toEqualTypeOf<readonly JournalEntry[]>();
    // @ts-expect-error a lean queue knows nothing of jobs
    new Queue(pool).job;
    // @ts-expect-error nor does one over a store that only produces
    new Queue(producer).job;
  });

  it("is a queue for a function that takes one, over a store too", () => {
    const send = (queue: Queue) => queue.enqueue(Count({ n: 1 }));
    expectTypeOf(send(new Queue(store))).resolves.toEqualTypeOf<JobId>();
    expectTypeOf(send(new Queue(pool))).resolves.toEqualTypeOf<JobId>();
  });

  it("is refused over what needs an adapter, and with options that are a store's own", () => {
    const postgresJs = { unsafe: async (_text: string) => [] };
    // @ts-expect-error no query(text, params)
    new Queue(postgresJs);
    // @ts-expect-error the store has its own prefix
    new Queue(store, { prefix: "a" }).job;
    // @ts-expect-error unknown option
    new Queue(pool, { perfix: "a" });
  });
});

describe("enqueueing", () => {
  const queue = new Queue(pool);

  it("takes jobs of any task, alone or with options", () => {
    const jobs = [SendEmail({ to: "a@example.com" }), Count({ n: 1 })];
    expectTypeOf(queue.enqueueMany(jobs)).resolves.toEqualTypeOf<JobId[]>();
    queue.enqueueMany([Count({ n: 1 }), { job: SendEmail({ to: "" }), delay: "1h" }]);
    queue.enqueue(Count({ n: 1 }), { delay: 5, signal: AbortSignal.timeout(1), headers: {} });
    queue.enqueueAt(Count({ n: 1 }), { epochMilliseconds: 0 }, { priority: "low" });
  });

  it("passes on options that may be undefined", () => {
    const signal = undefined as AbortSignal | undefined;
    const id = undefined as JobId | undefined;
    queue.enqueue(Count({ n: 1 }), { signal, id });
  });

  it("takes nothing else", () => {
    // @ts-expect-error a payload of another task
    Count({ to: "" });
    // @ts-expect-error not a job
    queue.enqueue({ kind: "count", payload: { n: 1 } });
    // @ts-expect-error the task itself
    queue.enqueue(Count);
    // @ts-expect-error unknown option
    queue.enqueue(Count({ n: 1 }), { dealy: "1h" });
    // @ts-expect-error no duration
    queue.enqueue(Count({ n: 1 }), { delay: "soon" });
    // @ts-expect-error the time is given already
    queue.enqueueAt(Count({ n: 1 }), new Date(), { delay: 1 });
  });

  it("goes within a pg client, a Kysely transaction, or what the store takes", () => {
    expectTypeOf(queue.within(pooled)).toEqualTypeOf<TransactionQueue>();
    queue.within(trx).enqueue(Count({ n: 1 }));
    new Queue(store).within(client).enqueueMany([]);
    // @ts-expect-error not a transaction
    queue.within("tx");
  });
});
