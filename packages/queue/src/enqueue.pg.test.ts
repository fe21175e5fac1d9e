import { createJobIds, defineTask, FAR_FUTURE_MS } from "@venturi/core";
import { PostgresStore } from "@venturi/store-postgres";
import { testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { describe, expect, it, vi } from "vitest";
import { Queue } from "./queue.ts";
import { Count, Independent, Kept, Replaced } from "./testing/tasks.ts";

const database = await testDatabase();
const queue = new Queue(database.pool);
const operator = new Queue(new PostgresStore({ pool: database.pool }));

async function jobCount(): Promise<number> {
  const { rows } = await database.pool.query("select count(*)::int as count from venturi_jobs");
  return rows[0].count;
}

/** Milliseconds from the database's now until the job is due. */
async function dueInMs(id: string): Promise<number> {
  const job = await operator.job(id);
  const { rows } = await database.pool.query("select clock_timestamp() as now");
  return Number(job?.visibleAt) - Number(rows[0].now);
}

describe("when a job is due", () => {
  it("is counted by the database's clock from a delay", async () => {
    const id = await queue.enqueue(Count({ n: 1 }), { delay: "1h" });
    expect(await dueInMs(id)).toBeGreaterThan(3_590_000);
    expect(await dueInMs(id)).toBeLessThanOrEqual(3_600_000);
  });

  it.each([
    ["ahead", 300_000],
    ["behind", -300_000],
  ])(
    "is the same where the producer's clock is five minutes %s, which moves the id's time alone",
    async (_, skew) => {
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + skew });
      // One generator serves the process and never goes back, so that an id of one's own shows the time.
      const ulid = createJobIds({ now: Date.now, random: Math.random })();
      const ids = [
        await queue.enqueue(Count({ n: 1 }), { id: ulid }),
        await queue.enqueue(Count({ n: 1 }), { delay: "1h" }),
      ];
      vi.useRealTimers();
      const [now, later] = await Promise.all(ids.map(dueInMs));
      expect(now).toBeLessThanOrEqual(0);
      expect(now).toBeGreaterThan(-10_000);
      expect(later).toBeGreaterThan(3_590_000);
      expect(later).toBeLessThanOrEqual(3_600_000);
      const createdAt = Number((await operator.job(ulid))?.createdAt);
      expect(Math.abs(createdAt - Date.now())).toBeLessThan(10_000);
    },
  );

  it.each([-5, 0])("is at once for a delay of %d", async (delay) => {
    expect(await dueInMs(await queue.enqueue(Count({ n: 1 }), { delay }))).toBeLessThanOrEqual(0);
  });

  it.each([Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER, "99999999999d"] as const)(
    "is the far date for a delay of %s",
    async (delay) => {
      const id = await queue.enqueue(Count({ n: 1 }), { delay });
      expect((await operator.job(id))?.visibleAt?.getTime()).toBe(FAR_FUTURE_MS);
    },
  );

  it("is an absolute time with enqueueAt and with runAt", async () => {
    const at = new Date(Date.now() + 86_400_000);
    const ids = [
      await queue.enqueueAt(Count({ n: 1 }), at),
      await queue.enqueueAt(Count({ n: 1 }), { epochMilliseconds: at.getTime() }),
      await queue.enqueue(Count({ n: 1 }), { runAt: at }),
    ];
    for (const id of ids) expect((await operator.job(id))?.visibleAt).toEqual(at);
  });

  it("is at once for a time that has passed, before the epoch included", async () => {
    for (const at of [new Date(Date.now() - 60_000), new Date(-1)]) {
      expect(await dueInMs(await queue.enqueueAt(Count({ n: 1 }), at))).toBeLessThanOrEqual(0);
    }
  });
});

describe("what a job carries", () => {
  it("is the input, while keys and priority come from the schema's output", async () => {
    const Sync = defineTask({
      kind: "sync",
      payload: v.object({ account: v.string(), since: v.optional(v.string(), "1970") }),
      priority: (payload) => (payload.since === "1970" ? "high" : "low"),
      dedupKey: (payload) => `${payload.account}/${payload.since}`,
    });
    const id = await queue.enqueue(Sync({ account: "a" }));
    expect(await operator.job(id)).toMatchObject({
      payload: { account: "a" },
      priority: "high",
      dedupKey: "a/1970",
    });
  });

  it("is validated by asynchronous schemas too", async () => {
    const payload = v.pipeAsync(
      v.string(),
      v.checkAsync(async (text) => text !== "no", "is not wanted"),
    );
    const Checked = defineTask({ kind: "checked", payload });
    const id = await queue.enqueue(Checked("yes"));
    expect(await operator.job(id)).toMatchObject({ payload: "yes" });
    await expect(queue.enqueue(Checked("no"))).rejects.toMatchObject({ code: "validation" });
    const many = queue.enqueueMany([Checked("yes"), Count({ n: 1 }), Checked("no")]);
    await expect(many).rejects.toThrow("items[2]");
  });

  it("includes priority and headers given to the call", async () => {
    const headers = { traceparent: "00-1", "request id": "ä" };
    const id = await queue.enqueue(Count({ n: 1 }), { priority: "low", headers });
    expect(await operator.job(id)).toMatchObject({ priority: "low", headers });
  });

  it.each([[[]], [[1, "two"]], [[{ x: 1 }]], ["text"], ["'\"\\u0000 \\"], [1e21], [null], [false]])(
    "may be any JSON: %j",
    async (payload) => {
      const Any = defineTask({ kind: "any", payload: v.unknown() });
      const id = await queue.enqueue(Any(payload));
      expect((await operator.job(id))?.payload).toEqual(payload);
    },
  );

  it("may be 20 MB", async () => {
    const Big = defineTask({ kind: "big", payload: v.string() });
    const text = "x".repeat(20_000_000);
    const id = await queue.enqueue(Big(text));
    expect((await operator.job(id))?.payload).toBe(text);
  });
});

describe("a task with a key", () => {
  const Keyed = defineTask({ kind: "keyed", payload: v.string(), dedupKey: (key) => key });

  it.each([
    ["longer than 512 characters", "😀".repeat(513)],
    ["with U+0000", "a\0"],
    ["with half a surrogate pair", "\ud800"],
  ])("that is %s is told so before a statement is sent", async (_, key) => {
    const Odd = defineTask({ kind: "odd", payload: v.number(), dedupKey: () => key });
    const sent = [vi.spyOn(database.pool, "query"), vi.spyOn(database.pool, "connect")];
    await expect(queue.enqueue(Odd(1))).rejects.toMatchObject({ code: "invalid-argument" });
    for (const calls of sent) {
      expect(calls).not.toHaveBeenCalled();
      calls.mockRestore();
    }
  });

  it.each(["", "😀".repeat(512)])("may be empty, or 512 characters long", async (key) => {
    const id = await queue.enqueue(Keyed(key));
    expect(await queue.enqueue(Keyed(key))).toBe(id);
    expect(await operator.job(id)).toMatchObject({ dedupKey: key });
  });

  it("keep leaves the pending job as it is and returns its id", async () => {
    const id = await queue.enqueue(Kept({ key: "a", n: 1 }));
    expect(await queue.enqueue(Kept({ key: "a", n: 2 }))).toBe(id);
    expect(await operator.job(id)).toMatchObject({ payload: { key: "a", n: 1 } });
    const journal = await operator.journal(id);
    expect(journal.map(({ outcome }) => outcome)).toEqual(["merged"]);
  });

  it("replace takes payload and priority from the incoming job, and the earlier time", async () => {
    const id = await queue.enqueue(Replaced({ key: "a", n: 1 }), { delay: "1h" });
    expect(await queue.enqueue(Replaced({ key: "a", n: 101 }), { delay: "2h" })).toBe(id);
    expect(await operator.job(id)).toMatchObject({
      payload: { key: "a", n: 101 },
      priority: "high",
    });
    expect(await dueInMs(id)).toBeLessThanOrEqual(3_600_000);
    await queue.enqueue(Replaced({ key: "a", n: 3 }));
    expect(await dueInMs(id)).toBeLessThanOrEqual(0);
  });

  it("independent makes a job of its own", async () => {
    const ids = [
      await queue.enqueue(Independent({ key: "a", n: 1 })),
      await queue.enqueue(Independent({ key: "a", n: 2 })),
    ];
    expect(new Set(ids).size).toBe(2);
  });

  it("is coalesced with jobs of its own kind only", async () => {
    const ids = [
      await queue.enqueue(Kept({ key: "shared", n: 1 })),
      await queue.enqueue(Replaced({ key: "shared", n: 1 })),
    ];
    expect(new Set(ids).size).toBe(2);
  });

  it("merges with an earlier job of the same call", async () => {
    const jobs = [1, 2, 3].map((n) => Replaced({ key: "together", n }));
    const ids = await queue.enqueueMany(jobs);
    expect(new Set(ids).size).toBe(1);
    expect((await operator.job(ids[0] as string))?.payload).toEqual({ key: "together", n: 3 });
  });
});

describe("an explicit id", () => {
  const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

  it("stores one job however often the call is repeated, and returns what the first did", async () => {
    expect(await queue.enqueue(Count({ n: 1 }), { id })).toBe(id);
    expect(await queue.enqueue(Count({ n: 2 }), { id })).toBe(id);
    expect(await queue.enqueueMany([{ job: Count({ n: 3 }), id }])).toEqual([id]);
    expect(await operator.job(id)).toMatchObject({ payload: { n: 1 } });
  });

  it("of a job that was merged leads to the surviving one again", async () => {
    const survivor = await queue.enqueue(Kept({ key: "repeat", n: 1 }));
    const merged = "01ARZ3NDEKTSV4RRFFQ69G5FAX";
    for (let times = 0; times < 2; times += 1) {
      expect(await queue.enqueue(Kept({ key: "repeat", n: 2 }), { id: merged })).toBe(survivor);
    }
    expect(await operator.journal(survivor)).toHaveLength(1);
  });

  it("that belongs to another kind or key is a conflict, naming it", async () => {
    const conflict = { code: "id-conflict", id, isRetryable: false };
    await expect(queue.enqueue(Kept({ key: "a", n: 1 }), { id })).rejects.toMatchObject(conflict);
    await expect(operator.enqueue(Kept({ key: "a", n: 1 }), { id })).rejects.toMatchObject(
      conflict,
    );
  });
});

describe("ids", () => {
  it("strictly increase within the process, across queues", async () => {
    const other = new Queue(database.pool);
    const ids: string[] = [];
    for (let n = 0; n < 20; n += 1) {
      ids.push(await (n % 2 === 0 ? queue : other).enqueue(Count({ n })));
    }
    expect([...new Set(ids)].sort()).toEqual(ids);
  });
});

describe("a signal", () => {
  it("aborted before the call stores nothing", async () => {
    const before = await jobCount();
    const reason = new Error("not any more");
    const signal = AbortSignal.abort(reason);
    await expect(queue.enqueue(Count({ n: 1 }), { signal })).rejects.toBe(reason);
    await expect(queue.enqueueMany([Count({ n: 1 })], { signal })).rejects.toBe(reason);
    expect(await jobCount()).toBe(before);
  });

  it("ends the waiting; what was sent is stored all the same, what was not is left out", async () => {
    const blocker = await database.pool.connect();
    const sent = "01ARZ3NDEKTSV4RRFFQ69G5FB1";
    const waiting = "01ARZ3NDEKTSV4RRFFQ69G5FB2";
    try {
      await blocker.query("begin");
      await blocker.query("lock table venturi_jobs in exclusive mode");
      const controller = new AbortController();
      const { signal } = controller;
      const first = queue.enqueue(Count({ n: 1 }), { id: sent, signal });
      await waitForBlocked();
      const second = queue.enqueue(Count({ n: 2 }), { id: waiting, signal });
      controller.abort();
      await expect(first).rejects.toBe(signal.reason);
      await expect(second).rejects.toBe(signal.reason);
    } finally {
      await blocker.query("commit");
      blocker.release();
    }
    // Behind the two: jobs with ids of the caller's own go one after the other, but not before all others.
    await queue.enqueue(Count({ n: 3 }), { id: "01ARZ3NDEKTSV4RRFFQ69G5FB3" });
    expect(await operator.job(sent)).toMatchObject({ status: "pending" });
    expect(await operator.job(waiting)).toBeNull();
  });

  it("may be shared by many calls without a warning, and is let go of", async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on("warning", onWarning);
    const { signal } = new AbortController();
    const jobs = Array.from({ length: 100 }, (_, n) => Count({ n }));
    await Promise.all(jobs.map((job) => queue.enqueue(job, { signal })));
    process.off("warning", onWarning);
    expect(warnings).toEqual([]);
  });
});

async function waitForBlocked(): Promise<void> {
  for (;;) {
    const { rows } = await database.pool.query(
      "select 1 from pg_locks where not granted and locktype = 'relation' and database = (select oid from pg_database where datname = current_database()) limit 1",
    );
    if (rows.length > 0) return;
  }
}
