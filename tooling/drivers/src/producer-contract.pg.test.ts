import type { JobId } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { Worker } from "@venturi/worker";
import { expectInvariants } from "@venturi-tooling/testing";
import { afterAll, describe, expect, it } from "vitest";
import type { DriverTransaction } from "./driver.ts";
import { drivers } from "./drivers/index.ts";
import { Anything, Independent, Kept, Replaced, Summed } from "./tasks.ts";
import { contractFixture, failureOf, newId, untilStored } from "./testing/contract-fixture.ts";

const { pool, url, store, operator, orders, status, payload, runEverything } =
  await contractFixture();

/** What an identifier may hold. */
const oddNames = { prefix: "odd_9", schema: 'Where "is" it? $1 :x ?? {it}' };
const odd = new PostgresStore({ pool, ...oddNames });
await odd.migrate();

/** What a payload may hold that one layer or another could take for its own. */
const trickyValues: readonly unknown[] = [
  "what? who?? \\? $1 $2 :name ::text -- /* %s %(a)s '' \" \\ \\u0041 \n\t",
  '{"json":"in text"}',
  '"quoted"',
  "2026-11-29T18:30:00.000Z",
  "123",
  "🚲 \u{1f469}\u200d\u{1f52c} ü",
  "",
  9007199254740991,
  -0.1,
  1e21,
  true,
  null,
  [],
  [[1, "2", null], {}],
  { $type: "DateTime", value: "2026", prisma__type: "json", "a?b": { nested: ["?"] } },
];

/** The process of the server that waits for a lock. */
async function blockedProcess(): Promise<number> {
  for (;;) {
    const { rows } = await pool.query<{ pid: number }>(
      `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    if (rows[0] !== undefined) return rows[0].pid;
  }
}

describe.each(drivers)("a producer over $name", ({ connect, isBare = false }) => {
  const driver = connect(url);
  const { producer } = driver;
  afterAll(async () => {
    await driver.close();
    await expectInvariants(pool);
  });

  /** Rejects as the contract says; bare SQL with the server's own error. */
  async function expectFailure(
    promise: Promise<unknown>,
    expected: { readonly code: string; readonly sqlState: string } & Record<string, unknown>,
  ) {
    const error = await failureOf(promise);
    expect(error).toMatchObject(isBare ? { code: expected.sqlState } : expected);
    return error;
  }

  class Undone extends Error {}

  /** Does everything and rolls it back. */
  async function rolledBack<T>(work: (tx: DriverTransaction) => Promise<T>): Promise<T> {
    let result: T | undefined;
    const undone = driver.transaction(async (tx) => {
      result = await work(tx);
      throw new Undone();
    });
    await expect(undone).rejects.toThrow(Undone);
    return result as T;
  }

  describe("enqueues", () => {
    it("a job that runs like any other", async () => {
      await runEverything();
      const headers = { traceparent: "00-1-2-03", "x?": "$1 ?" };
      const ids = [];
      for (const value of trickyValues)
        ids.push(await producer.enqueue(Anything({ value }), { headers }));
      const seen = new Map<JobId, unknown>();
      const worker = new Worker(store, { concurrency: 4 }).register(Anything, ({ value }, ctx) => {
        seen.set(ctx.id, value);
        expect(ctx.headers).toEqual(headers);
        expect(ctx.runCount).toBe(1);
      });
      expect(await worker.runOnce()).toMatchObject({ completed: ids.length, retried: 0 });
      expect(ids.map((id) => seen.get(id))).toEqual(trickyValues);
      expect(await status(ids[0] as JobId)).toBe("completed");
    });

    it("with every option", async () => {
      const id = newId();
      const runAt = new Date("2999-01-01T00:00:00.123Z");
      expect(await producer.enqueue(Anything({ value: 1 }), { id, priority: "high", runAt })).toBe(
        id,
      );
      expect(await operator.job(id)).toMatchObject({ priority: "high", visibleAt: runAt });
      const later = await producer.enqueue(Anything({ value: 2 }), { delay: 60_000 });
      const job = await operator.job(later);
      expect((job?.visibleAt?.getTime() ?? 0) - (job?.createdAt.getTime() ?? 0)).toBe(60_000);
      expect(job).toMatchObject({ priority: "normal", headers: {}, dedupKey: null });
      for (const each of [id, later]) await operator.cancel(each);
    });

    it("a job of an id once, however often", async () => {
      const id = newId();
      for (const value of [1, 2, 3]) {
        expect(await producer.enqueue(Anything({ value }), { id })).toBe(id);
      }
      expect(await payload(id)).toEqual({ value: 1 });
    });

    it("many in order, each with options of its own, all or none", async () => {
      const items = Array.from({ length: 300 }, (_, value) =>
        value % 2 === 0
          ? Anything({ value })
          : { job: Anything({ value }), priority: "low" as const },
      );
      const ids = await producer.enqueueMany(items);
      const { jobs } = await operator.jobs({ ids, limit: 1_000 });
      const byId = new Map(jobs.map((job) => [job.id, job]));
      expect(ids.map((id) => byId.get(id)?.payload)).toEqual(items.map((_, value) => ({ value })));
      expect(byId.get(ids[7] as JobId)?.priority).toBe("low");
      const fresh = newId();
      const refused = producer.enqueueMany([
        { job: Anything({ value: "none" }), id: fresh },
        { job: Kept({ key: "other", n: 1 }), id: ids[0] as JobId },
      ]);
      await expectFailure(refused, { code: "id-conflict", sqlState: "VT001", id: ids[0] });
      expect(await operator.job(fresh)).toBeNull();
    });
  });

  it("enqueues into a schema of any name", async () => {
    const elsewhere = driver.producerOf(oddNames);
    const key = newId();
    const id = await elsewhere.enqueue(Summed({ key, n: 1 }));
    expect(await elsewhere.enqueue(Summed({ key, n: 2 }))).toBe(id);
    expect(await operator.job(id)).toBeNull();
    expect((await new Queue(odd).job(id))?.payload).toEqual({ key, n: 3 });
  });

  describe("merges", () => {
    it("by constants", async () => {
      const key = `${newId()}?$1`;
      const kept = await producer.enqueue(Kept({ key, n: 1 }));
      expect(await producer.enqueue(Kept({ key, n: 2 }))).toBe(kept);
      expect(await payload(kept)).toEqual({ key, n: 1 });
      const replaced = await producer.enqueue(Replaced({ key, n: 1 }));
      expect(
        await producer.enqueueMany([Replaced({ key, n: 2 }), Replaced({ key, n: 3 })]),
      ).toEqual([replaced, replaced]);
      expect(await payload(replaced)).toEqual({ key, n: 3 });
      const first = await producer.enqueue(Independent({ key, n: 1 }));
      expect(await producer.enqueue(Independent({ key, n: 2 }))).not.toBe(first);
      expect((await operator.journal(replaced)).map(({ outcome }) => outcome)).toEqual([
        "merged",
        "merged",
      ]);
    });

    it("by a function, also of many at once", async () => {
      const key = newId();
      const first = await producer.enqueue(Summed({ key, n: 1 }));
      const others = Array.from({ length: 6 }, (_, n) => producer.enqueue(Summed({ key, n })));
      expect(new Set(await Promise.all(others))).toEqual(new Set([first]));
      expect(await payload(first)).toEqual({ key, n: 16 });
    });
  });

  describe("within a transaction of the library", () => {
    it("enqueues with its commit, together with what else was written", async () => {
      const id = await driver.transaction(async (tx) => {
        await tx.run("insert into orders values (17)");
        const inner = await tx.within().enqueue(Anything({ value: "committed" }));
        expect(await operator.job(inner)).toBeNull();
        return inner;
      });
      expect(await status(id)).toBe("pending");
      expect(await orders()).toEqual([17]);
    });

    it("leaves nothing behind a rollback", async () => {
      const key = newId();
      const pending = await producer.enqueue(Summed({ key, n: 1 }));
      const ids = await rolledBack(async (tx) => {
        await tx.run("insert into orders values (18)");
        expect(await tx.within().enqueue(Summed({ key, n: 5 }))).toBe(pending);
        return tx.within().enqueueMany([Anything({ value: 1 }), Kept({ key, n: 1 })]);
      });
      for (const id of ids) expect(await operator.job(id)).toBeNull();
      expect(await payload(pending)).toEqual({ key, n: 1 });
      expect(await orders()).toEqual([]);
    });

    it("merges by a function with its commit", async () => {
      const key = newId();
      const pending = await producer.enqueue(Summed({ key, n: 1 }));
      await driver.transaction((tx) => tx.within().enqueue(Summed({ key, n: 5 })));
      expect(await payload(pending)).toEqual({ key, n: 6 });
    });

    it("is not that of others who are open at the same time", async () => {
      const [kept, lost] = await driver.transaction(async (outer) => {
        const inner = await rolledBack(async (tx) => {
          const id = await tx.within().enqueue(Anything({ value: "lost" }));
          return [await outer.within().enqueue(Anything({ value: "kept" })), id] as const;
        });
        return inner;
      });
      expect(await status(kept)).toBe("pending");
      expect(await operator.job(lost)).toBeNull();
    });

    it("takes calls at the same time one after the other", async () => {
      const ids = await driver.transaction((tx) =>
        Promise.all(
          Array.from({ length: 10 }, (_, value) => tx.within().enqueue(Anything({ value }))),
        ),
      );
      expect(new Set(ids).size).toBe(10);
      for (const id of ids) expect(await status(id)).toBe("pending");
    });

    it("goes on after an error in a savepoint", async () => {
      const [outer, inner, later] = await driver.transaction(async (tx) => {
        const first = await tx.within().enqueue(Anything({ value: 1 }));
        let lost: JobId | undefined;
        const conflict = tx.nested(async (producer) => {
          lost = await producer.enqueue(Anything({ value: 2 }));
          await producer.enqueue(Kept({ key: "k", n: 1 }), { id: first });
        });
        const about = isBare ? {} : { id: first };
        await expectFailure(conflict, { code: "id-conflict", sqlState: "VT001", ...about });
        return [first, lost as JobId, await tx.within().enqueue(Anything({ value: 3 }))];
      });
      expect([await status(outer as JobId), await status(later as JobId)]).toEqual([
        "pending",
        "pending",
      ]);
      expect(await operator.job(inner as JobId)).toBeNull();
    });

    it("ends it with an error, and repeats nothing", async () => {
      const id = await producer.enqueue(Anything({ value: 1 }));
      const conflict = driver.transaction(async (tx) => {
        await tx.run("insert into orders values (19)");
        await tx.within().enqueue(Kept({ key: "k", n: 1 }), { id });
      });
      const about = isBare ? {} : { id };
      await expectFailure(conflict, { code: "id-conflict", sqlState: "VT001", ...about });
      expect(await orders()).toEqual([]);
      const key = newId();
      const late = driver.transaction(async (tx) => {
        await tx.run("set transaction isolation level serializable");
        await tx.run("select count(*) from venturi_jobs");
        await producer.enqueue(Replaced({ key, n: 1 }));
        await tx.within().enqueue(Replaced({ key, n: 2 }));
      });
      await expectFailure(late, { code: "database", sqlState: "40001", isRetryable: true });
    });
  });

  describe("fails", () => {
    it("as not-migrated where there is nothing to call", async () => {
      const elsewhere = driver
        .producerOf({ prefix: "nowhere" })
        .enqueue(Anything({ value: "s3cret" }));
      const error = await expectFailure(elsewhere, { code: "not-migrated", sqlState: "42883" });
      expect(error["message"]).not.toContain("s3cret");
    });

    it("as enqueue-unknown where the server ended the connection, and can be repeated", async () => {
      const key = newId();
      const id = newId();
      const holder = await pool.connect();
      await holder.query("begin");
      await operator.within(holder).enqueue(Replaced({ key, n: 1 }));
      const failure = failureOf(producer.enqueue(Replaced({ key, n: 2 }), { id }));
      await pool.query("select pg_terminate_backend($1)", [await blockedProcess()]);
      const error = await failure;
      await holder.query("rollback");
      holder.release();
      const unknown = { code: "enqueue-unknown", id, isRetryable: true };
      expect(error).toMatchObject(isBare ? { code: "57P01" } : unknown);
      expect(await untilStored(() => producer.enqueue(Replaced({ key, n: 2 }), { id }))).toBe(id);
    });
  });
});
