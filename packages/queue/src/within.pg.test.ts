import { PostgresStore } from "@venturi/store-postgres";
import { testDatabase } from "@venturi-tooling/testing";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Queue } from "./queue.ts";
import { Count, Replaced } from "./testing/tasks.ts";

const database = await testDatabase();
const operator = new Queue(new PostgresStore({ pool: database.pool }));
const pool = new pg.Pool({ connectionString: database.url });
// The database goes while its connections are being closed.
pool.on("error", () => undefined);
const kysely = new Kysely<Record<string, never>>({
  dialect: new PostgresDialect({ pool }),
});
const listener = new pg.Client({ connectionString: database.directUrl });
let notifications = 0;

beforeAll(async () => {
  await listener.connect();
  listener.on("notification", () => {
    notifications += 1;
  });
  await listener.query("listen venturi");
  // A worker that sleeps for up to a minute: what is due within it is worth a notification.
  await new PostgresStore({ pool: database.pool }).startWorker({
    name: "sleeper",
    kinds: ["count"],
    pollMaxMs: 60_000,
    workerTimeoutMs: 60_000,
    shortestLeaseMs: 60_000,
  });
});

afterAll(async () => {
  await Promise.all([listener.end(), kysely.destroy()]);
});

/** Notifications so far: a statement's reply comes after all that were sent before it. */
async function heard(): Promise<number> {
  await listener.query("select 1");
  return notifications;
}

async function transaction<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await database.pool.connect();
  try {
    return await work(client);
  } finally {
    client.release();
  }
}

const queues = {
  "a pool": () => new Queue(database.pool),
  "a store": () => operator,
};

describe.each(Object.entries(queues))("within a transaction, from a queue over %s", (_, make) => {
  it("a job is seen, and woken for, only after the commit", async () => {
    await transaction(async (client) => {
      const before = await heard();
      await client.query("begin");
      const id = await make()
        .within(client)
        .enqueue(Count({ n: 1 }));
      expect(await operator.job(id)).toBeNull();
      expect(await heard()).toBe(before);
      await client.query("commit");
      expect(await operator.job(id)).toMatchObject({ status: "pending" });
      expect(await heard()).toBe(before + 1);
    });
  });

  it("what is rolled back was never enqueued, and wakes nobody", async () => {
    await transaction(async (client) => {
      const before = await heard();
      await client.query("begin");
      const within = make().within(client);
      const ids = await within.enqueueMany([Count({ n: 1 }), Count({ n: 2 })]);
      ids.push(await within.enqueueAt(Count({ n: 3 }), new Date()));
      await client.query("rollback");
      for (const id of ids) expect(await operator.job(id)).toBeNull();
      expect(await heard()).toBe(before);
    });
  });

  it("goes with a Kysely transaction", async () => {
    const queue = make();
    const failed = kysely.transaction().execute(async (trx) => {
      await queue.within(trx).enqueue(Count({ n: 1 }), { id: lostId });
      throw new Error("changed my mind");
    });
    await expect(failed).rejects.toThrow("changed my mind");
    expect(await operator.job(lostId)).toBeNull();
    const id = await kysely
      .transaction()
      .execute((trx) => queue.within(trx).enqueue(Count({ n: 1 })));
    expect(await operator.job(id)).toMatchObject({ status: "pending" });
  });

  it("never begins or ends anything: an error leaves the transaction to its owner", async () => {
    await transaction(async (client) => {
      const queue = make();
      await client.query("begin");
      await client.query("savepoint mine");
      const id = await queue.within(client).enqueue(Count({ n: 1 }));
      const conflict = queue.within(client).enqueue(Replaced({ key: "k", n: 1 }), { id });
      await expect(conflict).rejects.toMatchObject({ code: "id-conflict", id });
      await client.query("rollback to savepoint mine");
      const other = await queue.within(client).enqueue(Count({ n: 2 }));
      await client.query("commit");
      expect(await operator.job(id)).toBeNull();
      expect(await operator.job(other)).toMatchObject({ status: "pending" });
    });
  });

  it("concurrent calls take turns on the connection", async () => {
    const warnings: string[] = [];
    const onWarning = (warning: Error) => warnings.push(warning.message);
    process.on("warning", onWarning);
    await transaction(async (client) => {
      const queue = make();
      await client.query("begin");
      const numbers = Array.from({ length: 20 }, (_, n) => n);
      const within = queue.within(client);
      const ids = await Promise.all(numbers.map((n) => within.enqueue(Count({ n }))));
      await client.query("commit");
      expect(new Set(ids).size).toBe(20);
    });
    process.off("warning", onWarning);
    expect(warnings).toEqual([]);
  });

  it("a conflict is not repeated but passed on as retryable", async () => {
    const first = await database.pool.connect();
    const second = await database.pool.connect();
    try {
      const queue = make();
      for (const client of [first, second]) {
        await client.query("begin isolation level serializable");
        await client.query("select count(*) from venturi_jobs");
      }
      await queue.within(first).enqueue(Replaced({ key: "serial", n: 1 }));
      await first.query("commit");
      const late = queue.within(second).enqueue(Replaced({ key: "serial", n: 2 }));
      await expect(late).rejects.toMatchObject({
        code: "database",
        sqlState: "40001",
        isRetryable: true,
      });
    } finally {
      await second.query("rollback");
      first.release();
      second.release();
    }
  });
});

const lostId = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

it("transactions of different callers do not wait for each other", async () => {
  const queue = new Queue(database.pool);
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  await transaction(async (slow) => {
    let isAsked = false;
    const gated = {
      query: async (text: string, params: unknown[]) => {
        isAsked = true;
        await gate;
        return slow.query(text, params);
      },
    };
    await slow.query("begin");
    const blocked = queue.within(gated).enqueue(Count({ n: 1 }));
    await expect.poll(() => isAsked).toBe(true);
    await transaction(async (quick) => {
      await quick.query("begin");
      let kept = "";
      const enqueuing = queue.within(quick).enqueue(Count({ n: 2 }));
      void enqueuing.then((id) => {
        kept = id;
      });
      try {
        await expect.poll(() => kept).not.toBe("");
      } finally {
        open();
        await enqueuing;
      }
      await quick.query("commit");
      const lost = await blocked;
      await slow.query("rollback");
      expect(await operator.job(kept)).toMatchObject({ status: "pending" });
      expect(await operator.job(lost)).toBeNull();
    });
  });
});

it.each([null, undefined, {}, "begin", 5, { connect: () => undefined }])(
  "%j is no transaction",
  (tx) => {
    expect(() => new Queue(database.pool).within(tx as never)).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument: "tx" }),
    );
  },
);

it("a pool, and a Kysely instance outside of its transactions, are no transaction", () => {
  const queue = new Queue(database.pool);
  for (const tx of [database.pool, kysely]) {
    expect(() => queue.within(tx)).toThrow(
      expect.objectContaining({ code: "invalid-argument", argument: "tx" }),
    );
  }
});
