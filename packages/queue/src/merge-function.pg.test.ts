import { type Decision, defineTask, Merge } from "@venturi/core";
import { PostgresStore } from "@venturi/store-postgres";
import { pastPooler } from "@venturi-tooling/testing/pooler";
import pg from "pg";
import * as v from "valibot";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Queue } from "./queue.ts";
import { add, type Carry, mergeFixture, type Payload, taskThat } from "./testing/merge-fixture.ts";

const { url, pool, operator, claim, outcomes, payloads } = await mergeFixture();
const listener = new pg.Client({ connectionString: pastPooler(url) });
let notifications = 0;

beforeAll(async () => {
  await listener.connect();
  listener.on("notification", () => {
    notifications += 1;
  });
  await listener.query("listen venturi");
});
afterAll(() => listener.end());

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
    const small = new pg.Pool({ connectionString: url, max: 2 });
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
