import { Backoff, type JobId } from "@venturi/core";
import { Queue, type SqlExecutor } from "@venturi/queue";
import type { PostgresTransaction } from "@venturi/store-postgres";
import { Worker } from "@venturi/worker";
import { TcpProxy } from "@venturi-tooling/testing/tcp-proxy";
import { describe, expect, it } from "vitest";
import type { DriverTransaction } from "./driver.ts";
import { drivers } from "./drivers/index.ts";
import { Anything, Summed } from "./tasks.ts";
import { contractFixture, failureOf, newId, untilStored } from "./testing/contract-fixture.ts";

const { pool, url, store, operator, orders, status, payload, runEverything } =
  await contractFixture();

const libraries = drivers.filter(({ isBare }) => isBare !== true);

describe.each(libraries)("over $name", ({ connect }) => {
  it("an answer that was lost on the way is enqueue-unknown, and the job is stored once", async () => {
    const proxy = await TcpProxy.before(url);
    const driver = connect(proxy.url);
    await driver.producer.enqueue(Anything({ value: 0 }));
    proxy.mode = "lose-replies";
    const error = await failureOf(driver.producer.enqueue(Anything({ value: "s3cret" })));
    proxy.mode = "pass";
    expect(error).toMatchObject({ code: "enqueue-unknown", isRetryable: true });
    expect(error["message"]).not.toContain("s3cret");
    const id = error["id"] as JobId;
    const again = () => driver.producer.enqueue(Anything({ value: 1 }), { id });
    expect(await untilStored(again)).toBe(id);
    await driver.close();
    await proxy.close();
  });

  it("a server that is not there is database and retryable, with nothing of the connection told", async () => {
    const driver = connect("postgres://ann:s3cret@127.0.0.1:1/jobs");
    const error = await failureOf(driver.producer.enqueue(Anything({ value: "hidden" })));
    expect(error).toMatchObject({ code: "database", isRetryable: true });
    expect(error["message"]).not.toMatch(/s3cret|hidden/);
    await driver.close();
  });

  it("what is outside of a transaction is refused as one", async () => {
    const { outside, close } = connect(url);
    for (const queue of [new Queue(pool), operator]) {
      expect(() => queue.within(outside as never).enqueue(Anything({ value: 1 }))).toThrow(
        expect.objectContaining({ code: "invalid-argument", argument: "tx" }),
      );
    }
    await close();
  });

  it("a queue made over a transaction, or over a store, enqueues in it", async () => {
    const driver = connect(url);
    const key = newId();
    const pending = await driver.producer.enqueue(Summed({ key, n: 1 }));
    const lost: JobId[] = [];
    const undone = driver.transaction(async (tx) => {
      const given = tx.store as PostgresTransaction & SqlExecutor;
      for (const queue of [new Queue(given), operator.within(given)]) {
        lost.push(await queue.enqueue(Anything({ value: 1 })));
        expect(await queue.enqueue(Summed({ key, n: 1 }))).toBe(pending);
      }
      throw new Error("undone");
    });
    await expect(undone).rejects.toThrow("undone");
    for (const id of lost) expect(await operator.job(id)).toBeNull();
    expect(lost).toHaveLength(2);
    expect(await payload(pending)).toEqual({ key, n: 1 });
    const sum = await driver.transaction((tx) => {
      const within = operator.within(tx.store as PostgresTransaction);
      return within.enqueueMany([Summed({ key, n: 2 }), Summed({ key, n: 3 })]);
    });
    expect(sum).toEqual([pending, pending]);
    expect(await payload(pending)).toEqual({ key, n: 6 });
    await driver.close();
  });

  it("a handler completes its run in a transaction of the library", async () => {
    await runEverything();
    const driver = connect(url);
    const id = await driver.producer.enqueue(Anything({ value: 20 }));
    const book = async (
      tx: DriverTransaction,
      complete: (tx: PostgresTransaction) => Promise<void>,
    ) => {
      await tx.run("insert into orders values (20)");
      await complete(tx.store as PostgresTransaction);
    };
    const worker = (fails: boolean) =>
      new Worker(store, { backoff: new Backoff({ base: 1, cap: 1 }), concurrency: 1 }).register(
        Anything,
        (_, ctx) =>
          driver.transaction(async (tx) => {
            await book(tx, (given) => ctx.complete(given, "booked"));
            if (fails) throw new Error("not booked");
          }),
      );
    expect(await worker(true).runOnce()).toMatchObject({ retried: 1, completed: 0 });
    expect(await orders()).toEqual([]);
    expect(await worker(false).runOnce()).toMatchObject({ retried: 0, completed: 1 });
    expect(await orders()).toEqual([20]);
    expect((await operator.journal(id)).map(({ note }) => note)).toEqual(["not booked", "booked"]);
    await driver.close();
  });

  it("a run that no longer holds its claim cannot commit what it wrote", async () => {
    const driver = connect(url);
    const jobId = await driver.producer.enqueue(Anything({ value: 21 }));
    const lost = { worker: 1, jobId, runCount: 1, note: null, attachment: null };
    const swallowed = driver.transaction(async (tx) => {
      await tx.run("insert into orders values (21)");
      const completing = store.complete(tx.store as PostgresTransaction, lost);
      await expect(completing).rejects.toMatchObject({ code: "claim-lost", id: jobId });
    });
    // Some libraries tell that the commit was refused, some do not.
    await swallowed.catch(() => undefined);
    expect(await orders()).toEqual([]);
    expect(await status(jobId)).toBe("pending");
    await driver.close();
  });
});
