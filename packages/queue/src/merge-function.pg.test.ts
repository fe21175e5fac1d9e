import { EventEmitter, once } from "node:events";
import {
  createJobIds,
  type Decision,
  defineTask,
  type JobId,
  Merge,
  type MergeFunction,
  silentLogger,
} from "@venturi/core";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import * as v from "valibot";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Queue } from "./queue.ts";
import { Add } from "./testing/adding.ts";
import { claimer } from "./testing/claiming.ts";

const database = await testDatabase();
const { pool } = database;
const store = new PostgresStore({ pool });
const operator = new Queue(store);
const listener = new pg.Client({ connectionString: database.url });
let notifications = 0;
const claim = await claimer(store);

beforeAll(async () => {
  await listener.connect();
  listener.on("notification", () => {
    notifications += 1;
  });
  await listener.query("listen venturi");
});
afterAll(() => listener.end());
beforeEach(() => pool.query("truncate venturi_jobs, venturi_queue, venturi_dead, venturi_journal"));
afterEach(() => expectInvariants(pool));

type Payload = { readonly key: string; readonly n: number };
type Carry = { readonly page: number };

/** A task of the kind of `Add` that merges in another way. */
function taskThat(merge: MergeFunction<Payload, Carry>) {
  return defineTask({
    kind: "add",
    payload: v.object({ key: v.string(), n: v.number() }),
    carry: v.optional(v.object({ page: v.number() }), { page: 0 }),
    dedupKey: ({ key }) => key,
    merge,
  });
}

const add = (n: number, key = "a") => Add({ key, n });
const outcomes = async (id: JobId) => (await operator.journal(id)).map(({ outcome }) => outcome);
const payloads = async () =>
  (await operator.jobs({ kind: "add" })).jobs.map(({ payload }) => (payload as Payload).n);

describe.each([
  ["a pool", () => new Queue(pool)],
  ["a store", () => new Queue(new PostgresStore({ pool }))],
] as const)("a merge function, from a queue over %s", (_, make) => {
  const queue = make();

  it("with: 10 + 5 is payload 15, one job, one entry", async () => {
    const id = await queue.enqueue(add(10), { priority: "low", delay: "1h" });
    const before = await operator.job(id);
    const again = await queue.enqueue(add(5), { priority: "high", headers: { a: "1" } });
    expect(again).toBe(id);
    // Time and priority stay, the headers come with the payload.
    expect(await operator.job(id)).toEqual({
      ...before,
      payload: { key: "a", n: 15 },
      headers: { a: "1" },
    });
    expect(await operator.journal(id)).toMatchObject([{ outcome: "merged", note: "with" }]);
  });

  it("with: a carry that is given is stored", async () => {
    const id = await queue.enqueue(add(10));
    const Paged = taskThat((incoming, { carry }) => Merge.with(incoming, { page: carry.page + 1 }));
    for (const n of [1, 2]) await queue.enqueue(Paged({ key: "a", n }));
    expect(await operator.job(id)).toMatchObject({ payload: { n: 2 }, carry: { page: 2 } });
  });

  it("with: 10 + 5 that counts in its carry is payload 15 and carry 1", async () => {
    const Summed = taskThat((incoming, { payload, carry }) =>
      Merge.with({ ...incoming, n: payload.n + incoming.n }, { page: carry.page + 1 }),
    );
    const id = await queue.enqueue(Summed({ key: "a", n: 10 }));
    expect(await queue.enqueue(Summed({ key: "a", n: 5 }))).toBe(id);
    expect(await operator.job(id)).toMatchObject({ payload: { n: 15 }, carry: { page: 1 } });
    expect(await outcomes(id)).toEqual(["merged"]);
  });

  it("with: time and priority change when it names them", async () => {
    const id = await queue.enqueue(add(10));
    const visibleAt = new Date(Date.now() + 3_600_000);
    const Later = taskThat((incoming) =>
      Merge.with(incoming, undefined, { visibleAt, priority: "high" }),
    );
    await queue.enqueue(Later({ key: "a", n: 1 }));
    expect(await operator.job(id)).toMatchObject({ visibleAt, priority: "high" });
  });

  it("with: a time that has passed means now", async () => {
    const id = await queue.enqueue(add(10), { delay: "1h" });
    const Now = taskThat((incoming) => Merge.with(incoming, undefined, { visibleAt: new Date(0) }));
    await queue.enqueue(Now({ key: "a", n: 1 }));
    const dueAt = Number((await operator.job(id))?.visibleAt);
    expect(Math.abs(dueAt - Date.now())).toBeLessThan(10_000);
  });

  it("keep leaves the rows as they are", async () => {
    const Kept = taskThat(() => Merge.keep());
    const id = await queue.enqueue(add(10));
    const rows = () =>
      pool.query(
        "select q.xmin, b.xmin as body from venturi_queue q join venturi_jobs b on b.id = q.job_id",
      );
    const before = (await rows()).rows;
    expect(await queue.enqueue(Kept({ key: "a", n: 1 }))).toBe(id);
    expect((await rows()).rows).toEqual(before);
    expect(await outcomes(id)).toEqual(["merged"]);
  });

  it("replace takes payload and priority, the initial carry and the earlier time", async () => {
    const Replaced = taskThat(() => Merge.replace());
    const Carried = taskThat((incoming) => Merge.with(incoming, { page: 7 }));
    const id = await queue.enqueue(add(10), { delay: "1h" });
    await queue.enqueue(Carried({ key: "a", n: 1 }));
    await queue.enqueue(Replaced({ key: "a", n: 2 }), { priority: "high", delay: "1m" });
    const job = await operator.job(id);
    expect(job).toMatchObject({ payload: { n: 2 }, carry: null, priority: "high" });
    expect(Number(job?.visibleAt) - Date.now()).toBeLessThan(70_000);
  });

  it("independent is a job of its own, and the first of the key is merged with", async () => {
    const Alone = taskThat(() => Merge.independent());
    const first = await queue.enqueue(add(1));
    const second = await queue.enqueue(Alone({ key: "a", n: 10 }));
    expect(second).not.toBe(first);
    expect(await queue.enqueue(add(2))).toBe(first);
    expect((await payloads()).sort()).toEqual([10, 3]);
  });

  it("sees the state and the journal of the pending job", async () => {
    const id = await queue.enqueue(add(1), { priority: "low" });
    await claim("add", "paused", { carry: '{"page":4}', attachment: '{"x":1}', note: "later" });
    const seen: unknown[] = [];
    const Seeing = taskThat((incoming, existing) => {
      seen.push(incoming, existing);
      return Merge.keep();
    });
    await queue.enqueue(Seeing({ key: "a", n: 2 }));
    const { visibleAt } = (await operator.job(id)) ?? {};
    const [entry] = await operator.journal(id);
    expect(seen).toEqual([
      { key: "a", n: 2 },
      {
        id,
        payload: { key: "a", n: 1 },
        carry: { page: 4 },
        runCount: 1,
        failureCount: 0,
        journal: [entry],
        visibleAt,
        priority: "low",
      },
    ]);
    expect(entry).toMatchObject({ outcome: "paused", attachment: { x: 1 }, worker: "claimer" });
  });

  it("into a paused job: same id, runCount stays, replace starts the carry again", async () => {
    const id = await queue.enqueue(add(1));
    await claim("add", "paused", { carry: '{"page":4}' });
    expect(await queue.enqueue(add(2))).toBe(id);
    expect(await operator.job(id)).toMatchObject({ carry: { page: 4 }, runCount: 1 });
    await queue.enqueue(taskThat(() => Merge.replace())({ key: "a", n: 9 }));
    expect(await operator.job(id)).toMatchObject({ carry: null, runCount: 1, payload: { n: 9 } });
    expect(await outcomes(id)).toEqual(["paused", "merged", "merged"]);
  });

  it("never meets a claimed, completed or dead job", async () => {
    const ids = [await queue.enqueue(add(1))];
    await claim("add", "completed");
    ids.push(await queue.enqueue(add(2)));
    await claim("add", "dead");
    ids.push(await queue.enqueue(add(3)));
    const held = await claim("add");
    ids.push(await queue.enqueue(add(4)));
    expect(new Set(ids).size).toBe(4);
    await held.settle("completed");
  });

  it("does not cross kinds, nor empty and other keys", async () => {
    const Other = defineTask({
      kind: "other",
      payload: v.object({ key: v.string(), n: v.number() }),
      dedupKey: ({ key }) => key,
      merge: () => Merge.keep(),
    });
    const jobs = [add(1, ""), add(1, "1"), Other({ key: "", n: 1 }), Other({ key: "1", n: 1 })];
    expect(new Set(await queue.enqueueMany(jobs)).size).toBe(4);
    await queue.enqueue(add(2, ""));
    expect((await payloads()).sort()).toEqual([1, 3]);
  });

  it("keeps the key of the surviving row", async () => {
    const id = await queue.enqueue(add(1));
    const Renaming = taskThat((incoming) => Merge.with({ ...incoming, key: "renamed" }));
    await queue.enqueue(Renaming({ key: "a", n: 2 }));
    expect(await operator.job(id)).toMatchObject({ dedupKey: "a", payload: { key: "renamed" } });
  });

  it("recomputes the lease from the payload that it gives", async () => {
    const Leased = defineTask({
      kind: "leased",
      payload: v.object({ n: v.number() }),
      dedupKey: () => "k",
      lease: ({ n }) => n * 1_000,
      merge: (incoming, existing) => Merge.with({ n: incoming.n + existing.payload.n }),
    });
    await queue.enqueue(Leased({ n: 10 }));
    await queue.enqueue(Leased({ n: 20 }));
    const { rows } = await pool.query("select lease_ms::float8 as ms from venturi_queue");
    expect(rows).toEqual([{ ms: 30_000 }]);
  });

  it("in enqueueMany: duplicates merge with the earlier ones, atomically and in order", async () => {
    const pending = await queue.enqueue(add(100));
    const ids = await queue.enqueueMany([add(1), add(1, "b"), add(2), add(2, "b"), add(3)]);
    expect(ids).toEqual([pending, ids[1], pending, ids[1], pending]);
    expect((await payloads()).sort((a, b) => a - b)).toEqual([3, 106]);
    expect(await outcomes(pending)).toEqual(["merged", "merged", "merged"]);
  });

  it("in enqueueMany: a bad one rejects all, and nothing is written", async () => {
    const Bad = taskThat(() => {
      throw new Error("no");
    });
    await queue.enqueue(add(1));
    const many = queue.enqueueMany([add(2), add(1, "b"), Bad({ key: "a", n: 1 })]);
    await expect(many).rejects.toMatchObject({ code: "merge", isRetryable: false });
    expect(await payloads()).toEqual([1]);
  });

  it.each([
    [
      "throws",
      "merge",
      () => {
        throw new Error("no");
      },
    ],
    ["returns a promise", "merge", async () => Merge.keep()],
    ["decides nothing", "merge", () => undefined],
    ["gives a bad payload", "validation", () => Merge.with({ key: "a", n: "x" })],
  ] as readonly [string, string, () => unknown][])(
    "that %s rejects its own enqueue, and no other",
    async (_what, code, merge) => {
      const id = await queue.enqueue(add(1));
      const before = await operator.job(id);
      const Bad = taskThat(merge as () => Decision<Payload, Carry>);
      const settled = await Promise.allSettled([
        queue.enqueue(add(1, "b")),
        queue.enqueue(Bad({ key: "a", n: 1 })),
        queue.enqueue(add(2, "b")),
      ]);
      expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
      expect(settled[1]).toMatchObject({ reason: { code, isRetryable: false } });
      expect(await operator.job(id)).toEqual(before);
      expect((await payloads()).sort()).toEqual([1, 3]);
    },
  );

  it("may enqueue itself, of other keys and of its own", async () => {
    const small = new pg.Pool({ connectionString: database.url, max: 2 });
    const nested: Promise<string>[] = [];
    const inner = new Queue(small);
    const Nesting = taskThat((incoming) => {
      if (nested.length < 4) {
        nested.push(inner.enqueue(add(1, "b")), inner.enqueue(add(1, incoming.key)));
      }
      return Merge.keep();
    });
    await inner.enqueue(add(1));
    await Promise.all([1, 2].map((n) => inner.enqueue(Nesting({ key: "a", n }))));
    await Promise.all(nested);
    expect((await payloads()).sort()).toEqual([2, 3]);
    await small.end();
  });

  it("a repeat and a new job given twice, in one call: the new one counts once, in whatever order", async () => {
    for (const order of ["KUU", "UUK", "KKU", "KUVUV"]) {
      const key = `twice ${order}`;
      await queue.enqueue(Add({ key, n: 1 }));
      const newId = createJobIds({ now: Date.now, random: Math.random });
      const ids = new Map([..."KUV"].map((name) => [name, newId()]));
      const item = (name: string) => ({ job: Add({ key, n: 1 }), id: ids.get(name) });
      const { job, ...options } = item("K");
      await queue.enqueue(job, options);
      const items = [...order].map(item);
      const stored = await queue.enqueueMany(items);
      expect(new Set(stored).size).toBe(1);
      expect((await operator.job(stored[0] as string))?.payload).toEqual({
        key,
        n: 2 + new Set(order).size - 1,
      });
    }
  });

  it("repeats with the same id return what the first call did", async () => {
    const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    const merged = "01ARZ3NDEKTSV4RRFFQ69G5FAW";
    await queue.enqueue(add(1), { id });
    await queue.enqueue(add(2), { id: merged });
    // Alone, and in one statement with additions of the same key.
    expect(await queue.enqueue(add(2), { id: merged })).toBe(id);
    const many = [{ job: add(2), id: merged }, add(10), { job: add(1), id }, add(20)];
    expect(await queue.enqueueMany(many)).toEqual([id, id, id, id]);
    expect(await payloads()).toEqual([33]);
    await claim("add", "completed");
    const [again, fresh] = await queue.enqueueMany([{ job: add(1), id }, add(5)]);
    expect(again).toBe(id);
    expect(fresh).not.toBe(id);
  });

  it("shares a call with constant merges of the same kind and key", async () => {
    const Constant = defineTask({
      kind: "add",
      payload: v.object({ key: v.string(), n: v.number() }),
      dedupKey: ({ key }) => key,
      merge: "replace",
    });
    const id = await queue.enqueue(add(1));
    const ids = await queue.enqueueMany([add(1), Constant({ key: "a", n: 50 }), add(7)]);
    expect(ids).toEqual([id, id, id]);
    expect(await payloads()).toEqual([57]);
  });
});

describe("pending jobs that cannot be decoded", () => {
  it.each([
    ["payload", `update venturi_jobs set payload = '{"bad":1}'`],
    ["carry", `update venturi_queue set carry = '"text"'`],
  ])("for their %s neither block nor multiply, with a warning an enqueue", async (_, spoil) => {
    const warned: unknown[] = [];
    const logger = { ...silentLogger, warn: (...told: unknown[]) => warned.push(told) };
    const queue = new Queue(pool, { logger });
    const poisoned = await queue.enqueue(add(1));
    await pool.query(spoil);
    const ids: JobId[] = [];
    for (const n of [1, 2, 3, 4, 5]) ids.push(await queue.enqueue(add(n)));
    expect(new Set(ids).size).toBe(1);
    expect(ids).not.toContain(poisoned);
    expect(await operator.job(ids[0] as JobId)).toMatchObject({ payload: { n: 15 } });
    expect((await operator.jobs({ status: "pending" })).jobs).toHaveLength(2);
    expect(warned).toHaveLength(5);
    expect(warned[0]).toEqual([expect.any(String), { kind: "add", jobs: [poisoned] }]);
    expect(JSON.stringify(warned)).not.toContain("bad");
  });

  it("are read on until one can be decoded, however many there are", async () => {
    const queue = new Queue(pool);
    const Alone = taskThat(() => Merge.independent());
    await queue.enqueueMany(Array.from({ length: 40 }, (_, n) => Alone({ key: "a", n })));
    await pool.query("update venturi_jobs set payload = '0'");
    const id = await queue.enqueue(add(1));
    expect(await queue.enqueue(add(2))).toBe(id);
    expect(await operator.job(id)).toMatchObject({ payload: { n: 3 } });
  });
});

describe("a race", () => {
  /** A queue to which something happens between reading and deciding, a number of times. */
  /** An addition of another process: those of this one take turns. */
  const addElsewhere = () =>
    pool.query(`with body as (
        update venturi_jobs set version = coalesce(version, 0) + 1,
          payload = jsonb_set(payload, '{n}', to_jsonb((payload ->> 'n')::int + 1)) returning id)
      update venturi_queue q set version = q.version + 1 from body where q.job_id = body.id`);

  function interrupted(happening: () => Promise<unknown>, times = 1): Queue {
    let left = times;
    return new Queue({
      query: async (text, params) => {
        const result = await pool.query(text, params);
        if (text.includes("merge_candidates") && left > 0) {
          left -= 1;
          await happening();
        }
        return result;
      },
    });
  }

  it("with a claim: the job is inserted as new, with the initial carry", async () => {
    const id = await operator.enqueue(add(1));
    await claim("add", "paused", { carry: '{"page":4}' });
    let held: Awaited<ReturnType<typeof claim>> | undefined;
    const queue = interrupted(async () => {
      held = await claim("add");
    });
    const fresh = await queue.enqueue(add(2));
    expect(fresh).not.toBe(id);
    expect(await operator.job(fresh)).toMatchObject({ payload: { n: 2 }, carry: null });
    await held?.settle("completed");
  });

  it("with a run that came and went: the decision is made anew", async () => {
    const id = await operator.enqueue(add(1));
    const queue = interrupted(() => claim("add", "paused", { carry: '{"page":4}' }));
    expect(await queue.enqueue(add(2))).toBe(id);
    expect(await operator.job(id)).toMatchObject({ payload: { n: 3 }, carry: { page: 4 } });
  });

  it("with another merge, many times over, loses nothing", async () => {
    const id = await operator.enqueue(add(1));
    const queue = interrupted(addElsewhere, 5);
    expect(await queue.enqueue(add(10))).toBe(id);
    expect(await operator.job(id)).toMatchObject({ payload: { n: 16 } });
  });

  it("with the first insert of the key leaves one job", async () => {
    const queue = interrupted(() => operator.enqueue(add(1)));
    await queue.enqueue(add(2));
    expect(await payloads()).toEqual([3]);
  });

  it("that never ends is a retryable merge after ten seconds", async () => {
    await operator.enqueue(add(1));
    const queue = interrupted(addElsewhere, Number.POSITIVE_INFINITY);
    const startedAt = performance.now();
    const error = { code: "merge", isRetryable: true, sqlState: "VT003" };
    await expect(queue.enqueue(add(2))).rejects.toMatchObject(error);
    expect(performance.now() - startedAt).toBeLessThan(11_000);
  });

  it("does not hold up jobs that have nothing to merge", async () => {
    await operator.enqueue(add(1));
    const gate = new EventEmitter();
    const Plain = defineTask({ kind: "plain", payload: v.number() });
    const held = once(gate, "open");
    const reading = once(gate, "reading");
    // A store whose candidates take their time.
    const slow = new PostgresStore({ pool });
    const queue = new Queue({
      ...{ portVersion: slow.portVersion, capabilities: slow.capabilities },
      enqueue: (request: Parameters<typeof slow.enqueue>[0]) => slow.enqueue(request),
      findCandidates: async (request: Parameters<typeof slow.findCandidates>[0]) => {
        gate.emit("reading");
        await held;
        return slow.findCandidates(request);
      },
    });
    const merging = queue.enqueue(add(1));
    await reading;
    await queue.enqueue(Plain(1));
    gate.emit("open");
    await merging;
  });
});

describe("within a transaction", () => {
  async function transaction<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await pool.connect();
    try {
      await client.query("begin");
      return await work(client);
    } finally {
      await client.query("rollback");
      client.release();
    }
  }

  it("a merge is seen when it commits, and never was when it rolls back", async () => {
    const queue = new Queue(pool);
    const id = await queue.enqueue(add(1));
    for (const [end, n] of [
      ["rollback", 1],
      ["commit", 6],
    ] as const) {
      await transaction(async (client) => {
        const within = queue.within(client);
        expect(await within.enqueue(add(2))).toBe(id);
        expect(await within.enqueueMany([add(1), add(2)])).toEqual([id, id]);
        expect(await payloads()).toEqual([1]);
        await client.query(end);
      });
      expect(await payloads()).toEqual([n]);
    }
  });

  it.each(["read committed", "repeatable read", "serializable"])(
    "a race is not repeated but retryable, at %s",
    async (level) => {
      const id = await operator.enqueue(add(1));
      await transaction(async (client) => {
        await client.query(`set transaction isolation level ${level}`);
        let calls = 0;
        const queue = new Queue(pool).within({
          query: async (text, params) => {
            const result = await client.query(text, params);
            if (text.includes("merge_candidates")) {
              calls += 1;
              await operator.enqueue(add(1));
            }
            return result;
          },
        });
        await expect(queue.enqueue(add(2))).rejects.toMatchObject({ isRetryable: true });
        expect(calls).toBe(1);
      });
      expect(await operator.job(id)).toMatchObject({ payload: { n: 2 } });
    },
  );

  it("a merge function that throws leaves the transaction as it was", async () => {
    const Bad = taskThat(() => {
      throw new Error("no");
    });
    await operator.enqueue(add(1));
    await transaction(async (client) => {
      const within = operator.within(client);
      await expect(within.enqueue(Bad({ key: "a", n: 1 }))).rejects.toMatchObject({
        code: "merge",
      });
      await within.enqueue(add(2));
      await client.query("commit");
    });
    expect(await payloads()).toEqual([3]);
  });
});

describe("workers are woken", () => {
  const heard = async () => {
    await listener.query("select 1");
    return notifications;
  };

  it.each([
    ["by a merge that makes a job due", { visibleAt: new Date() }, 1],
    ["by a merge that raises its priority", { priority: "high" as const }, 1],
    ["not by one that does neither", { priority: "low" as const }, 0],
  ])("%s", async (_, changes, expected) => {
    const due = "priority" in changes ? {} : ({ delay: "10h" } as const);
    await operator.enqueue(add(1), due);
    const before = await heard();
    await operator.enqueue(
      taskThat((incoming) => Merge.with(incoming, undefined, changes))({ key: "a", n: 1 }),
    );
    expect((await heard()) - before).toBe(expected);
  });
});

it("a schema that hangs over what is pending holds up no other merge for ever", async () => {
  let hangs = false;
  const Hanging = defineTask({
    kind: "hanging",
    payload: v.pipeAsync(
      v.number(),
      v.checkAsync(() => (hangs ? new Promise<boolean>(() => undefined) : true)),
    ),
    dedupKey: () => "k",
    merge: () => Merge.keep(),
  });
  const queue = new Queue(pool);
  const job = Hanging(1);
  await queue.enqueue(job);
  const wedged = queue.enqueue(job);
  // It has been validated when it gets to the candidates.
  queueMicrotask(() => {
    hangs = true;
  });
  const results = await Promise.allSettled([wedged, queue.enqueue(add(1)), queue.enqueue(add(2))]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
  expect(results[0]).toMatchObject({ reason: { code: "merge", isRetryable: false } });
});

it("a body of the first release is found however many jobs of the key have ended", async () => {
  const client = await pool.connect();
  try {
    await client.query(`insert into venturi_kinds (name) values ('add') on conflict do nothing`);
    await client.query(`insert into venturi_jobs (id, created_at, kind_id, priority, dedup_key, payload)
      select gen_random_uuid(), now(), k.id, 1, 'a', '{"key":"a","n":1}'
      from venturi_kinds k, generate_series(1, 20000) where k.name = 'add'`);
    const id = await operator.enqueue(add(1));
    const { rows } = await client.query(
      `explain (analyze, buffers, format json) select * from venturi_merge_candidates_v1('[{"kind":"add","dedup_key":"a","limit":2}]')`,
    );
    const { Plan: plan } = rows[0]["QUERY PLAN"][0];
    expect(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]).toBeLessThan(200);
    expect(await operator.enqueue(add(2))).toBe(id);
  } finally {
    await client.query("truncate venturi_jobs, venturi_queue, venturi_journal");
    client.release();
  }
});
