import { defineTask, Merge, type StaleClaim } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { Worker } from "./index.ts";
import { running } from "./testing/running.ts";
import { until } from "./testing/signals.ts";

// Somebody always writes into the tables. Whatever a row says, the others go on, and nothing is stuck.

const { url, pool } = await testDatabase();
const store = await PostgresStore.connect({ connectionString: url });
const queue = new Queue(store);
const Task = defineTask({ kind: "by_hand", payload: v.object({}) });
const Forever = defineTask({ kind: "forever", payload: v.object({}), backstop: null });

expectNoWarnings();
afterAll(() => store.close());
afterEach(() =>
  pool.query(
    "truncate venturi_jobs, venturi_queue, venturi_dead, venturi_journal, venturi_workers",
  ),
);

const statusOf = async (id: string) => (await queue.job(id))?.status;
const hasEnded = (id: string) => async () =>
  ["completed", "dead"].includes((await statusOf(id)) ?? "");
const set = (id: string, columns: string) =>
  pool.query(
    `update venturi_queue set ${columns} where job_id = (select id from venturi_jobs where venturi_ulid(id) = $1)`,
    [id],
  );
const ignored = { backstop: 20, holder: 0 } satisfies Partial<StaleClaim>;

describe("a count at the end of its range", () => {
  it("of failures: the run is settled, and the count stays there", async () => {
    const [dies, lives] = await queue.enqueueMany([Task({}), Forever({})]);
    await pool.query("update venturi_queue set failure_count = 2147483647");
    const fail = () => {
      throw new Error("once more");
    };
    const worker = new Worker(store).register(Task, fail).register(Forever, fail);
    expect(await worker.runOnce()).toMatchObject({ dead: 1, retried: 1 });
    expect(await queue.job(dies as string)).toMatchObject({
      status: "dead",
      failureCount: 2_147_483_647,
    });
    expect(await queue.job(lives as string)).toMatchObject({
      status: "pending",
      failureCount: 2_147_483_647,
    });
  });

  it("of failures, in a claim that is recovered", async () => {
    const id = await queue.enqueue(Forever({}));
    await set(
      id,
      `failure_count = 2147483647, run_count = 1, claimed_by = 77, claimed_at = now(), lease_expires_at = now() - interval '1 s'`,
    );
    const worker = new Worker(store).register(Forever, () => undefined);
    await running(worker, () =>
      until(async () => (await queue.journal(id)).some((e) => e.outcome === "stale-recovered")),
    );
    expect(await queue.job(id)).toMatchObject({ failureCount: 2_147_483_647 });
  });

  it("of failures, below nothing: its next failure is the first", async () => {
    const id = await queue.enqueue(Task({}));
    await set(id, "failure_count = -2147483648");
    const worker = new Worker(store).register(Task, () => {
      throw new Error("the first");
    });
    // Without a delay after a first failure, but each job at most once a call.
    expect(await worker.runOnce()).toMatchObject({ retried: 1 });
  });

  it("of runs: nobody claims the job, and the others run", async () => {
    const [full, other] = await queue.enqueueMany([Task({}), Task({})]);
    await set(full as string, "run_count = 2147483647");
    const worker = new Worker(store).register(Task, () => undefined);
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
    expect(await statusOf(other as string)).toBe("completed");
    expect(await queue.cancel(full as string)).toBe(true);
  });

  it("of merges: it starts again, for constants and functions", async () => {
    const keyed = { payload: v.object({ n: v.number() }), dedupKey: () => "k" };
    const Constant = defineTask({ kind: "constant", ...keyed });
    const Sum = defineTask({
      kind: "sum",
      ...keyed,
      merge: (incoming, { payload }) => Merge.with({ n: incoming.n + payload.n }),
    });
    for (const Kind of [Constant, Sum]) {
      const id = await queue.enqueue(Kind({ n: 1 }));
      await pool.query("update venturi_jobs set version = 2147483647");
      await set(id, "version = 2147483647");
      expect(await queue.enqueueMany([Kind({ n: 2 }), Kind({ n: 3 })])).toEqual([id, id]);
      expect(await queue.job(id)).toMatchObject({ payload: { n: Kind === Sum ? 6 : 3 } });
    }
  });
});

describe("a place in the order that no job gets", () => {
  it.each(["9223372036854775807", "9007199254740993", "0", "-1", "-8000000000000000000"])(
    "%s: the job runs, and so do those beside it",
    async (seq) => {
      const ids = await queue.enqueueMany(Array.from({ length: 3 }, () => Task({})));
      await set(ids[1] as string, `seq = ${seq}`);
      const worker = new Worker(store).register(Task, () => undefined);
      await running(worker, async () => {
        await until(async () => (await queue.stats()).pendingByKind["by_hand"] === undefined);
        // The session has seen that place, and goes on.
        const after = await queue.enqueue(Task({}));
        await until(hasEnded(after));
      });
      expect((await queue.stats()).claimed).toBe(0);
    },
  );
});

describe("a time that no job gets", () => {
  it("a job due since for ever runs, one due never waits, and both are counted", async () => {
    const [ever, never, soon] = await queue.enqueueMany([
      { job: Task({}), delay: "1h" },
      { job: Task({}), delay: "1h" },
      { job: Task({}), delay: "1h" },
    ]);
    await set(ever as string, "visible_at = '-infinity'");
    await set(never as string, "visible_at = 'infinity'");
    await set(soon as string, "visible_at = '0044-03-15 BC'");
    expect((await queue.stats()).scheduledByKind).toEqual({ by_hand: 1 });
    const worker = new Worker(store).register(Task, () => undefined);
    expect(await worker.runOnce()).toMatchObject({ completed: 2 });
    expect(await statusOf(never as string)).toBe("pending");
    const { visibleAt } = (await queue.job(never as string)) ?? {};
    expect(visibleAt?.toISOString()).toBe("+275760-09-13T00:00:00.000Z");
  });

  it("a job made before or after all time is listed, and does not keep others from being cleaned up", async () => {
    const [past, future, other] = await queue.enqueueMany([Task({}), Task({}), Task({})]);
    for (const [id, at] of [
      [past, "-infinity"],
      [future, "infinity"],
    ])
      await pool.query("update venturi_jobs set created_at = $2 where venturi_ulid(id) = $1", [
        id,
        at,
      ]);
    expect((await queue.jobs()).jobs.map(({ createdAt }) => createdAt.getTime())).not.toContain(
      Number.NaN,
    );
    await new Worker(store).register(Task, () => undefined).runOnce();
    expect(await statusOf(other as string)).toBe("completed");
    expect(await queue.cleanup({ finishedBefore: new Date(Date.now() + 60_000) })).toBe(3);
  });
});

describe("a worker's row that says what no worker says", () => {
  it.each([
    ["'NaN'", "now()"],
    ["1e300", "now()"],
    ["-1e300", "now()"],
    ["'infinity'", "now()"],
    ["'-infinity'", "now()"],
    ["1000", "'infinity'"],
    ["1000", "'-infinity'"],
    ["1e300", "'294276-01-01'"],
    ["-1", "'4000-01-01 BC'"],
  ])("times of %s, a beat at %s: everybody goes on", async (ms, beatAt) => {
    await pool.query(
      `insert into venturi_workers (id, name, started_at, beat_at, poll_max_ms, worker_timeout_ms, shortest_lease_ms, kinds, code_version)
       values (999, 'absurd', '-infinity', ${beatAt}, ${ms}, ${ms}, ${ms}, '{}', -1)`,
    );
    // Stale claims are found, whatever their holder's row says of it.
    const stale = await queue.enqueue(Task({}));
    await set(
      stale,
      `run_count = 1, claimed_by = 999, claimed_at = now(), lease_expires_at = now() - interval '1 s'`,
    );
    const later = await queue.enqueue(Task({}), { delay: 100 });
    expect((await queue.stats()).workers).toBeGreaterThanOrEqual(0);
    const worker = new Worker(store).register(Task, () => undefined);
    await running(worker, async () => {
      await until(hasEnded(later));
      await until(hasEnded(stale));
    });
    expect(await queue.cleanup({ finishedBefore: new Date(Date.now() + 60_000) })).toBeGreaterThan(
      0,
    );
  });

  it("a claim without a lease of a worker that lives is recovered", async () => {
    const id = await queue.enqueue(Task({}));
    const worker = new Worker(store).register(Task, () => undefined);
    const { worker: holder } = await store.startWorker({
      name: "lives",
      kinds: ["by_hand"],
      pollMaxMs: 1,
      workerTimeoutMs: 600_000,
      shortestLeaseMs: 0,
    });
    await set(id, `run_count = 1, claimed_by = ${holder}, lease_expires_at = null`);
    await running(worker, () => until(hasEnded(id)));
    expect((await queue.journal(id)).map(({ outcome }) => outcome)).toEqual([
      "stale-recovered",
      "completed",
    ]);
  });
});

describe("a job whose parts do not fit", () => {
  it("without a body it is dead, saying so", async () => {
    const [gone, other] = await queue.enqueueMany([Task({}), Task({})]);
    await pool.query("delete from venturi_jobs where venturi_ulid(id) = $1", [gone]);
    const worker = new Worker(store).register(Task, () => undefined);
    expect(await worker.runOnce()).toMatchObject({ completed: 1, dead: 1 });
    expect(await statusOf(other as string)).toBe("completed");
    const [entry] = await queue.journal(gone as string);
    expect(entry).toMatchObject({ outcome: "dead", note: expect.stringContaining("payload") });
  });

  it("without a body its stale claim is recovered all the same", async () => {
    const gone = await queue.enqueue(Task({}));
    await set(
      gone,
      `run_count = 1, claimed_by = 77, claimed_at = now(), lease_expires_at = now() - interval '1 s'`,
    );
    await pool.query("delete from venturi_jobs");
    const { claims } = await store.findStale({ holders: [], orphans: true, limit: 10 });
    expect(claims).toMatchObject([{ ...ignored, backstop: null, holder: 77, payload: "" }]);
    const worker = new Worker(store).register(Task, () => undefined);
    await running(worker, () =>
      until(async () => (await queue.journal(gone)).some(({ outcome }) => outcome === "dead")),
    );
  });

  it.each([
    ["payload = '5'", "dead"],
    ["payload = 'null'", "dead"],
    [`payload = ('[' || repeat('[', 900) || repeat(']', 900) || ']')::jsonb`, "completed"],
    [`payload = '{"__proto__": {"polluted": true}, "constructor": 1, "n": 1e400}'`, "completed"],
    [`headers = '"text"'`, "completed"],
    [`headers = '[1, 2]'`, "completed"],
    [`headers = 'null'`, "completed"],
    [`headers = '{"__proto__": "x", "n": 1, "o": {"a": 1}}'`, "completed"],
    ["priority = 77", "completed"],
    ["dedup_key = repeat('x', 2000)", "completed"],
    ["version = -5", "completed"],
  ])("a body with %s: %s", async (columns, status) => {
    const id = await queue.enqueue(Task({}));
    await pool.query(`update venturi_jobs set ${columns}`);
    const headers: unknown[] = [];
    const worker = new Worker(store).register(Task, (_, ctx) => {
      headers.push(...Object.values(ctx.headers));
    });
    await worker.runOnce();
    expect(await statusOf(id)).toBe(status);
    for (const value of headers) expect(value).toBeTypeOf("string");
    expect((await queue.jobs()).jobs).toHaveLength(1);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it.each([
    "lease_ms = 'NaN'",
    "lease_ms = 'infinity'",
    "lease_ms = -1e300",
    "carry = '{\"a\": [1]}'",
    "backstop = -7, claimed_at = 'infinity'",
    "expires_at = '-infinity', cancel_requested = true",
    "dedup_key = ''",
  ])("a row with %s: the job comes to its end", async (columns) => {
    const id = await queue.enqueue(Task({}));
    await set(id, columns);
    const worker = new Worker(store).register(Task, () => undefined);
    await running(worker, () => until(hasEnded(id)));
  });

  it("a dead row and a journal of nonsense are read, put back and cleaned up", async () => {
    const id = await queue.enqueue(Task({}));
    await new Worker(store, { backstop: 1 })
      .register(Task, () => {
        throw new Error("dies");
      })
      .runOnce();
    await pool.query(
      "update venturi_dead set finished_at = 'infinity', version = 2147483647, run_count = -3, failure_count = 2147483647",
    );
    await pool.query(
      `insert into venturi_journal (recorded_at, started_at, job_id, kind_id, run_no, failure_count, worker_id, outcome, note, attachment, detail)
       select 'infinity', '-infinity', job_id, -1, -1, -1, -1, 'z', '', 'null', '[]' from venturi_dead`,
    );
    const entries = await queue.journal(id);
    expect(entries).toHaveLength(2);
    expect(entries.every(({ recordedAt }) => !Number.isNaN(recordedAt.getTime()))).toBe(true);
    expect(await queue.job(id)).toMatchObject({ status: "dead" });
    expect(await queue.retry(id)).toBe(true);
    await new Worker(store).register(Task, () => undefined).runOnce();
    expect(await statusOf(id)).toBe("completed");
  });
});
