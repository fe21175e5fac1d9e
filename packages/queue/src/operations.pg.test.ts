import type { JobId } from "@venturi/core";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Queue } from "./queue.ts";
import { claimer } from "./testing/claiming.ts";
import { Count, Kept, SendEmail } from "./testing/tasks.ts";

const database = await testDatabase();
const { pool } = database;
const store = new PostgresStore({ pool });
const queue = new Queue(store);
const claim = await claimer(store);

beforeEach(() => pool.query("truncate venturi_jobs, venturi_queue, venturi_dead, venturi_journal"));
afterEach(() => expectInvariants(pool));

const soon = () => new Date(Date.now() + 60_000);
const outcomes = async (id: JobId) => (await queue.journal(id)).map(({ outcome }) => outcome);

/** Moves all that has happened so far into the past. */
async function age(ms: number): Promise<void> {
  await pool.query("update venturi_journal set recorded_at = recorded_at - $1 * interval '1 ms'", [
    ms,
  ]);
  await pool.query("update venturi_dead set finished_at = finished_at - $1 * interval '1 ms'", [
    ms,
  ]);
}

async function ended(outcome: "completed" | "dead"): Promise<JobId> {
  const id = await queue.enqueue(Count({ n: 1 }));
  await claim("count", outcome);
  return id;
}

describe("retry(id)", () => {
  it("puts a dead job back: due now, failures forgotten, runs going on, journaled", async () => {
    const id = await queue.enqueue(Count({ n: 1 }), { priority: "low", headers: { a: "1" } });
    await claim("count", "retried");
    await claim("count", "dead");
    expect(await queue.job(id)).toMatchObject({ status: "dead", failureCount: 2, runCount: 2 });
    expect(await queue.retry(id)).toBe(true);
    expect(await queue.job(id)).toMatchObject({
      status: "pending",
      failureCount: 0,
      runCount: 2,
      priority: "low",
      headers: { a: "1" },
      finishedAt: null,
    });
    await claim("count", "completed");
    expect(await queue.job(id)).toMatchObject({
      status: "completed",
      failureCount: 0,
      runCount: 3,
    });
    expect(await outcomes(id)).toEqual(["retried", "dead", "requeued", "completed"]);
    expect((await queue.journal(id)).map(({ runNo }) => runNo)).toEqual([1, 2, 2, 3]);
  });

  it("keeps the carry", async () => {
    const id = await queue.enqueue(Count({ n: 1 }));
    await claim("count", "paused", { carry: '{"page":3}' });
    await claim("count", "dead");
    await queue.retry(id);
    expect(await queue.job(id)).toMatchObject({ carry: { page: 3 } });
  });

  it("does not apply to any other job", async () => {
    const pending = await queue.enqueue(SendEmail({ to: "a@example.com" }));
    const others = [pending, await ended("completed"), "01ARZ3NDEKTSV4RRFFQ69G5FAV"];
    for (const id of others) expect(await queue.retry(id)).toBe(false);
    expect(await outcomes(pending)).toEqual([]);
  });

  it("applies once, of many at the same time", async () => {
    const id = await ended("dead");
    const applied = await Promise.all([1, 2, 3, 4, 5].map(() => queue.retry(id)));
    expect(applied.filter(Boolean)).toHaveLength(1);
    expect(await outcomes(id)).toEqual(["dead", "requeued"]);
  });
});

describe("cancel(id)", () => {
  it("ends a pending job, journaled, and frees its key", async () => {
    const id = await queue.enqueue(Kept({ key: "a", n: 1 }), { delay: "1h" });
    expect(await queue.cancel(id)).toBe(true);
    const job = await queue.job(id);
    expect(job).toMatchObject({ status: "cancelled", failureCount: 0, visibleAt: null });
    expect(job?.finishedAt).toBeInstanceOf(Date);
    expect(await outcomes(id)).toEqual(["cancelled"]);
    expect((await queue.jobs({ status: "cancelled" })).jobs).toEqual([job]);
    expect(await queue.enqueue(Kept({ key: "a", n: 2 }))).not.toBe(id);
  });

  it("does not apply to claimed, ended and unknown jobs", async () => {
    const held = await queue.enqueue(Count({ n: 1 }));
    const { settle } = await claim("count");
    expect(await queue.cancel(held)).toBe(false);
    await settle("completed");
    const others = [held, await ended("dead"), "01ARZ3NDEKTSV4RRFFQ69G5FAV"];
    for (const id of others) expect(await queue.cancel(id)).toBe(false);
    expect(await outcomes(held)).toEqual(["completed"]);
  });

  it("applies once, of many at the same time, and never beside a claim", async () => {
    for (let round = 0; round < 20; round += 1) {
      const id = await queue.enqueue(Count({ n: round }));
      const [held, ...applied] = await Promise.all([
        claim("count"),
        queue.cancel(id),
        queue.cancel(id),
      ]);
      expect(applied.filter(Boolean).length + held.ids.length).toBeLessThanOrEqual(1);
      await held.settle("completed");
      await queue.cancel(id);
    }
  });
});

it.each(["retry", "cancel"] as const)("%s refuses what is no id", async (verb) => {
  const error = { code: "invalid-argument", argument: "id" };
  await expect(queue[verb]("42")).rejects.toMatchObject(error);
});

describe("stats()", () => {
  it("counts by kind what is pending, scheduled, waiting, claimed and dead", async () => {
    await queue.enqueueMany([Count({ n: 1 }), Count({ n: 2 }), Count({ n: 3 })]);
    await claim("count", "dead");
    await queue.enqueue(SendEmail({ to: "a@example.com" }));
    const held = await claim("send_email");
    await queue.enqueueMany([
      Count({ n: 4 }),
      { job: Count({ n: 5 }), delay: "1h" },
      { job: Kept({ key: "a", n: 1 }), delay: "1h" },
    ]);
    const stats = await queue.stats();
    expect(stats).toEqual({
      pendingByKind: { count: 2, kept: 1 },
      scheduledByKind: { count: 1, kept: 1 },
      oldestPendingAgeMsByKind: { count: expect.any(Number) },
      claimed: 1,
      deadByKind: { count: 3 },
      workers: 1,
    });
    expect(Object.getPrototypeOf(stats.pendingByKind)).toBeNull();
    await pool.query("update venturi_queue set visible_at = visible_at - interval '1 minute'");
    const age = (await queue.stats()).oldestPendingAgeMsByKind["count"] ?? 0;
    expect(age).toBeGreaterThanOrEqual(60_000);
    expect(age).toBeLessThan(90_000);
    await held.settle("completed");
  });

  it("of an empty queue are empty", async () => {
    const none = Object.create(null);
    expect(await queue.stats()).toEqual({
      pendingByKind: none,
      scheduledByKind: none,
      oldestPendingAgeMsByKind: none,
      claimed: 0,
      deadByKind: none,
      workers: 1,
    });
  });

  it("are one moment: a job that toggles is counted once in every snapshot", async () => {
    await queue.enqueue(Count({ n: 1 }));
    let going = true;
    const toggling = (async () => {
      while (going) await claim("count", "paused");
    })();
    for (let look = 0; look < 300; look += 1) {
      const { pendingByKind, claimed } = await queue.stats();
      expect((pendingByKind["count"] ?? 0) + claimed).toBe(1);
    }
    going = false;
    await toggling;
  });
});

describe("cleanup(filter)", () => {
  it("deletes ended jobs with their journals, and returns how many", async () => {
    const ids = [await ended("completed"), await ended("dead")];
    const cancelled = await queue.enqueue(Count({ n: 1 }));
    await queue.cancel(cancelled);
    expect(await queue.cleanup({ finishedBefore: soon() })).toBe(3);
    for (const id of [...ids, cancelled]) {
      expect(await queue.job(id)).toBeNull();
      expect(await queue.journal(id)).toEqual([]);
    }
    const { rows } = await pool.query(
      "select (select count(*) from venturi_jobs) + (select count(*) from venturi_dead) + (select count(*) from venturi_journal) as n",
    );
    expect(rows).toEqual([{ n: "0" }]);
    expect(await queue.cleanup({ finishedBefore: soon() })).toBe(0);
  });

  it("never touches a job that has not ended, however old", async () => {
    const old = new Date(0);
    const ids = [await queue.enqueue(Count({ n: 1 }))];
    await claim("count", "paused");
    await claim("count", "retried");
    ids.push(await queue.enqueue(Count({ n: 2 }), { delay: "1h" }));
    ids.push(await queue.enqueue(SendEmail({ to: "a@example.com" })));
    const held = await claim("send_email");
    await pool.query("update venturi_jobs set created_at = $1", [old]);
    await pool.query("update venturi_journal set recorded_at = $1", [old]);
    expect(await queue.cleanup({ finishedBefore: soon() })).toBe(0);
    for (const id of ids) expect(await queue.job(id)).not.toBeNull();
    await held.settle("completed");
  });

  it("is strict: a job that ended at the very instant stays", async () => {
    const id = await ended("completed");
    await pool.query("update venturi_journal set recorded_at = date_trunc('second', recorded_at)");
    const finishedAt = (await queue.job(id))?.finishedAt as Date;
    expect(await queue.cleanup({ finishedBefore: finishedAt })).toBe(0);
    expect(await queue.cleanup({ finishedBefore: new Date(finishedAt.getTime() + 1) })).toBe(1);
  });

  it("narrows by kind and status together", async () => {
    await ended("completed");
    const dead = await ended("dead");
    await queue.enqueue(SendEmail({ to: "a@example.com" }));
    await claim("send_email", "completed");
    const finishedBefore = soon();
    expect(await queue.cleanup({ finishedBefore, kind: "unknown" })).toBe(0);
    expect(await queue.cleanup({ finishedBefore, status: [] })).toBe(0);
    expect(await queue.cleanup({ finishedBefore, status: "cancelled" })).toBe(0);
    expect(await queue.cleanup({ finishedBefore, kind: "send_email", status: "dead" })).toBe(0);
    expect(await queue.cleanup({ finishedBefore, kind: "count", status: "completed" })).toBe(1);
    expect(await queue.job(dead)).toMatchObject({ status: "dead" });
    expect(await queue.cleanup({ finishedBefore, status: ["dead", "completed"] })).toBe(2);
  });

  it.each([["pending"], ["claimed"], ["done"]])("refuses the status %s", async (status) => {
    await expect(
      queue.cleanup({ finishedBefore: soon(), status: status as never }),
    ).rejects.toMatchObject({ code: "invalid-argument", argument: "filter.status" });
  });

  it("between dying and what followed, deletes nothing", async () => {
    const ids = [await ended("dead"), await ended("dead")];
    await age(60_000);
    const between = new Date(Date.now() - 30_000);
    for (const id of ids) await queue.retry(id);
    expect(await queue.cleanup({ finishedBefore: between })).toBe(0);
    await claim("count", "completed");
    expect(await queue.cleanup({ finishedBefore: between })).toBe(0);
    for (const id of ids) {
      expect(await queue.job(id)).toMatchObject({ status: "completed" });
      expect(await outcomes(id)).toEqual(["dead", "requeued", "completed"]);
    }
  });

  it("between dying and dying again, deletes nothing; after both, the job once", async () => {
    const id = await ended("dead");
    await age(60_000);
    const between = new Date(Date.now() - 30_000);
    await queue.retry(id);
    await claim("count", "dead");
    expect(await queue.cleanup({ finishedBefore: between })).toBe(0);
    expect(await queue.job(id)).toMatchObject({ status: "dead", runCount: 2 });
    expect(await outcomes(id)).toEqual(["dead", "requeued", "dead"]);
    expect(await queue.cleanup({ finishedBefore: soon() })).toBe(1);
  });

  it("left pending after a retry, deletes nothing", async () => {
    const id = await ended("dead");
    await queue.retry(id);
    expect(await queue.cleanup({ finishedBefore: soon() })).toBe(0);
    expect(await queue.job(id)).toMatchObject({ status: "pending" });
  });

  it.each([
    ["in one instant", "interval '0'"],
    ["in another order than they were written down in", "entry_no * interval '1 us'"],
  ])("deletes more than a batch of jobs that ended %s", async (_, earlier) => {
    await queue.enqueueMany(Array.from({ length: 1_500 }, (_, n) => Count({ n })));
    for (let round = 0; round < 2; round += 1) await claim("count", "completed");
    await pool.query(
      `update venturi_journal set recorded_at = date_trunc('second', now()) - ${earlier}`,
    );
    expect(await queue.cleanup({ finishedBefore: soon() })).toBe(1_500);
    expect((await queue.jobs()).jobs).toEqual([]);
  });

  it("by several processes at once deletes each job once", async () => {
    await queue.enqueueMany(Array.from({ length: 3_000 }, (_, n) => Count({ n })));
    for (let round = 0; round < 3; round += 1) await claim("count", "completed");
    const stores = [1, 2, 3].map(() => new Queue(new PostgresStore({ pool })));
    const deleted = await Promise.all(stores.map((one) => one.cleanup({ finishedBefore: soon() })));
    const rest = await queue.cleanup({ finishedBefore: soon() });
    expect(deleted.reduce((a, b) => a + b, rest)).toBe(3_000);
    expect((await queue.jobs()).jobs).toEqual([]);
  });

  it("that is interrupted keeps what it has done", async () => {
    await queue.enqueueMany(Array.from({ length: 3_000 }, (_, n) => Count({ n })));
    for (let round = 0; round < 3; round += 1) await claim("count", "completed");
    const controller = new AbortController();
    const { signal } = controller;
    const interrupting = new PostgresStore({
      pool: new Proxy(pool, {
        get(target, name) {
          if (name !== "query") return Reflect.get(target, name, target);
          return async (query: { text: string }) => {
            const result = await target.query<{ deleted?: unknown }>(query);
            const [row] = result.rows;
            if (Number(row?.deleted) > 0) controller.abort(new Error("enough"));
            return result;
          };
        },
      }),
    });
    const cleaning = new Queue(interrupting).cleanup({ finishedBefore: soon(), signal });
    await expect(cleaning).rejects.toThrow("enough");
    const left = await queue.cleanup({ finishedBefore: soon() });
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThan(3_000);
  });

  it("removes workers that have been gone for as long, not those that beat", async () => {
    await pool.query(
      `insert into venturi_workers (name, started_at, beat_at, poll_max_ms, worker_timeout_ms, shortest_lease_ms, kinds, code_version)
       select 'gone', now() - interval '2 days', now() - interval '1 day', 1, 1, 1, '{}', 1`,
    );
    const names = async () => {
      const { rows } = await pool.query("select name from venturi_workers order by name");
      return rows.map(({ name }) => name);
    };
    await queue.cleanup({ finishedBefore: new Date(Date.now() - 2 * 86_400_000) });
    expect(await names()).toContain("gone");
    await queue.cleanup({ finishedBefore: new Date() });
    expect(await names()).toEqual(["claimer"]);
  });

  it("leaves the worker of a claim its name, however long it has been gone", async () => {
    const gone = await claimer(store, "gone");
    const id = await queue.enqueue(Count({ n: 1 }));
    const held = await gone("count");
    const dayAgo =
      "update venturi_workers set beat_at = beat_at - interval '1 day' where name = 'gone'";
    await pool.query(dayAgo);
    await queue.cleanup({ finishedBefore: new Date() });
    expect(await queue.job(id)).toMatchObject({ claimedBy: "gone" });
    await held.settle("completed");
    await queue.cleanup({ finishedBefore: new Date(Date.now() - 3_600_000) });
    expect(await queue.journal(id)).toMatchObject([{ worker: null }]);
  });

  it("stops before it starts when its signal has aborted", async () => {
    await ended("completed");
    const signal = AbortSignal.abort(new Error("no"));
    await expect(queue.cleanup({ finishedBefore: soon(), signal })).rejects.toThrow("no");
    expect(await queue.cleanup({ finishedBefore: soon() })).toBe(1);
  });
});

describe("a signal", () => {
  it("ends the waiting of retry, cancel and cleanup; what was sent is carried out all the same", async () => {
    const completed = await ended("completed");
    const dead = await ended("dead");
    const pending = await queue.enqueue(Count({ n: 2 }));
    const blocker = await pool.connect();
    const controller = new AbortController();
    const { signal } = controller;
    try {
      await blocker.query("begin");
      await blocker.query("lock table venturi_jobs, venturi_queue, venturi_journal, venturi_dead");
      const calls = [
        queue.retry(dead, { signal }),
        queue.cancel(pending, { signal }),
        queue.cleanup({ finishedBefore: soon(), status: "completed" }, { signal }),
      ];
      await blocked(3);
      controller.abort();
      for (const call of calls) await expect(call).rejects.toBe(signal.reason);
    } finally {
      await blocker.query("commit");
      blocker.release();
    }
    const statusOf = async (id: JobId) => (await queue.job(id))?.status;
    await expect.poll(() => statusOf(dead)).toBe("pending");
    await expect.poll(() => statusOf(pending)).toBe("cancelled");
    expect(await statusOf(completed)).toBe("completed");
  });
});

/** Resolves when as many statements wait for a table. */
async function blocked(count: number): Promise<void> {
  for (;;) {
    const { rows } = await pool.query(
      "select pid from pg_locks where not granted and locktype = 'relation' and database = (select oid from pg_database where datname = current_database())",
    );
    if (rows.length === count) return;
  }
}
