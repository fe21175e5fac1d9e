import { defineTask, Outcome } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import { TcpProxy } from "@venturi-tooling/testing/tcp-proxy";
import * as v from "valibot";
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Worker } from "./index.ts";
import { running } from "./testing/running.ts";
import { deferred, until } from "./testing/signals.ts";
import { wrapStore } from "./testing/wrap-store.ts";

const database = await testDatabase();
const store = await PostgresStore.connect({ connectionString: database.url });
const deaf = await PostgresStore.connect({ connectionString: database.url, listen: false });
const queue = new Queue(store);
const payload = v.object({ n: v.number() });

expectNoWarnings();
afterAll(() => Promise.all([store.close(), deaf.close()]));
afterEach(() => expectInvariants(database.pool));

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const isCompleted = async (id: string) => (await queue.job(id))?.status === "completed";

/** Processes of connections that listen, or have probed whether they still do. */
async function listeners(): Promise<number[]> {
  const { rows } = await database.pool.query(`select pid from pg_stat_activity
    where datname = current_database() and (query ilike 'listen %' or query = '')
      and state = 'idle' and query_start is not null`);
  return rows.map(({ pid }) => pid);
}

/** A store that counts its claims, and tells when one came back empty. */
function counted(of: PostgresStore, counts = { claims: 0, empty: 0 }) {
  let isUp = false;
  let isAsleep = false;
  const counting = wrapStore(of, (plain) => ({
    claim: async (request) => {
      counts.claims += 1;
      const wasUp = isUp;
      const result = await plain.claim(request);
      if (result.jobs.length === 0) {
        counts.empty += 1;
        isAsleep = wasUp;
      }
      return result;
    },
    listen: (request) =>
      of.listen({
        ...request,
        onWake: (...hints) => {
          isUp = true;
          request.onWake(...hints);
        },
      }),
  }));
  /** Waits until the one worker of this store has looked once more since it listens, and found nothing. */
  const asleep = () => until(() => isAsleep);
  return { counts, counting, asleep };
}

describe("an idle worker that may sleep for a minute", () => {
  test("finds out within two heartbeats that the connection it listens on has gone silent", async () => {
    const Task = defineTask({ kind: "silent_listener", payload });
    const proxy = await TcpProxy.before(database.directUrl);
    const behind = await PostgresStore.connect({
      connectionString: database.url,
      listenConnectionString: proxy.url,
    });
    const options = { pollMax: "60s", heartbeat: "300ms" } as const;
    const worker = new Worker(behind, options).register(Task, () => undefined);
    await running(worker, async () => {
      await until(async () => (await listeners()).length > 0);
      proxy.mode = "swallow";
      const swallowedAt = performance.now();
      const id = await queue.enqueue(Task({ n: 1 }));
      await until(() => proxy.accepted === 2);
      expect(performance.now() - swallowedAt).toBeLessThan(1_500);
      proxy.mode = "refuse";
      proxy.mode = "pass";
      await until(() => isCompleted(id), { withinMs: 3_000 });
    });
    await behind.close();
    await proxy.close();
  });

  test("starts a job within a second that is enqueued between its last look and its sleep", async () => {
    const Task = defineTask({ kind: "race", payload });
    let isArmed = false;
    const racing = wrapStore(store, (plain) => ({
      claim: async (request) => {
        const result = await plain.claim(request);
        if (result.jobs.length > 0 || !isArmed) return result;
        // Committed after the claim has looked, before the worker learns that it found nothing.
        isArmed = false;
        await queue.enqueue(Task({ n: 1 }));
        await wait(Math.random() * 3);
        return result;
      },
    }));
    let runs = 0;
    const worker = new Worker(racing, { pollMax: "60s" }).register(Task, () => {
      runs += 1;
    });
    await running(worker, async () => {
      for (let round = 1; round <= 50; round += 1) {
        isArmed = true;
        await until(async () => {
          // A false alarm makes it look once more.
          if (isArmed) await database.pool.query("select pg_notify('venturi', '')");
          return !isArmed;
        });
        await until(() => runs === round, { withinMs: 1_000, what: `round ${round} starts` });
      }
    });
  });

  test("starts jobs within five seconds when only its listening connection has died", async () => {
    const Task = defineTask({ kind: "deaf_for_a_moment", payload });
    const worker = new Worker(store, { pollMax: "60s" }).register(Task, () => undefined);
    await running(worker, async () => {
      await until(async () => (await listeners()).length > 0);
      const lost = await listeners();
      await database.pool.query("select pg_terminate_backend(pid) from unnest($1::int4[]) pid", [
        lost,
      ]);
      const during = await queue.enqueue(Task({ n: 1 }));
      await until(() => isCompleted(during), { withinMs: 5_000 });
      await until(async () => (await listeners()).some((pid) => !lost.includes(pid)));
      const after = await queue.enqueue(Task({ n: 2 }));
      await until(() => isCompleted(after), { withinMs: 5_000 });
    });
  });

  test("sleeps: no claim while nothing happens", async () => {
    const Task = defineTask({ kind: "asleep", payload });
    const { counts, counting, asleep } = counted(store);
    const worker = new Worker(counting, { pollMax: "60s" }).register(Task, () => undefined);
    await running(worker, async () => {
      await asleep();
      const before = counts.claims;
      await wait(1_000);
      expect(counts.claims).toBe(before);
    });
  });
});

describe("without notifications", () => {
  test("a job starts within pollMax", async () => {
    const Task = defineTask({ kind: "polled", payload });
    const { counts, counting } = counted(deaf);
    const worker = new Worker(counting, { pollMax: 300 }).register(Task, () => undefined);
    await running(worker, async () => {
      await until(() => counts.empty > 0);
      const id = await queue.enqueue(Task({ n: 1 }));
      await until(() => isCompleted(id), { withinMs: 1_000 });
    });
  });

  test("what this worker has paused or failed runs again when it is due, however long it may sleep", async () => {
    const Task = defineTask({ kind: "own_pause", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(deaf, { pollMax: "60s" }).register(Task, (_, ctx) => {
      if (ctx.runCount === 1) return Outcome.pauseFor(0);
      if (ctx.runCount === 2) throw new Error("no");
      return ctx.runCount === 3 ? Outcome.pauseFor(200) : undefined;
    });
    await running(worker, () => until(() => isCompleted(id), { withinMs: 2_000 }));
  });
});

describe("clocks", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test.each([
    ["ahead", 120_000],
    ["behind", -120_000],
  ])(
    "a worker whose clock is two minutes %s starts a scheduled job when the database says so, without spinning",
    async (name, skew) => {
      const Task = defineTask({ kind: `clock ${name}`, payload });
      const id = await queue.enqueue(Task({ n: 1 }), { delay: "1.5s" });
      const at = performance.now();
      vi.setSystemTime(Date.now() + skew);
      const { counts, counting } = counted(store);
      const started = deferred();
      const worker = new Worker(counting, { pollMax: "60s" }).register(Task, () =>
        started.resolve(),
      );
      await running(worker, () => started.promise);
      expect(performance.now() - at).toBeGreaterThan(1_400);
      expect(performance.now() - at).toBeLessThan(2_300);
      expect(counts.claims).toBeLessThanOrEqual(6);
      expect(await isCompleted(id)).toBe(true);
    },
  );

  test("a retry is due after its backoff by the database's clock, whatever the worker's says", async () => {
    const Task = defineTask({ kind: "clock_retry", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    vi.setSystemTime(Date.now() - 60_000);
    const worker = new Worker(store).register(Task, () => Outcome.pauseFor("5s"));
    await worker.runOnce();
    const { rows } = await database.pool.query(
      "select extract(epoch from visible_at - clock_timestamp())::float8 as s from venturi_queue where venturi_ulid(job_id) = $1",
      [id],
    );
    expect(rows[0].s).toBeGreaterThan(4);
    expect(rows[0].s).toBeLessThanOrEqual(5);
    await database.pool.query(
      "delete from venturi_queue; delete from venturi_journal; delete from venturi_jobs",
    );
  });
});

test("a job due in sixty days with a pollMax of sixty days makes no hot loop", async () => {
  const Task = defineTask({ kind: "sixty_days", payload });
  await queue.enqueue(Task({ n: 1 }), { delay: "60d" });
  const { counts, counting } = counted(store);
  const worker = new Worker(counting, { pollMax: "60d", shutdownTimeout: "30d" }).register(
    Task,
    () => undefined,
  );
  await running(worker, () => wait(1_500));
  // One at the start, one when the listening connection is up.
  expect(counts.claims).toBeLessThanOrEqual(2);
});

describe("a storm of notifications", () => {
  test("one job makes each of ten idle workers look about once", async () => {
    const Task = defineTask({ kind: "herd", payload });
    const counts = { claims: 0, empty: 0 };
    const stores = Array.from({ length: 10 }, () => counted(store, counts));
    const workers = stores.map(({ counting }) =>
      new Worker(counting, { concurrency: 1, pollMax: "60s" }).register(Task, () => undefined),
    );
    await running(workers, async () => {
      await Promise.all(stores.map(({ asleep }) => asleep()));
      const before = counts.claims;
      const id = await queue.enqueue(Task({ n: 1 }));
      await until(() => isCompleted(id));
      await wait(200);
      expect(counts.claims - before).toBeLessThanOrEqual(22);
    });
  });

  test("many enqueues while a worker is busy cost it no claims", async () => {
    const Task = defineTask({ kind: "burst", payload });
    const { counts, counting } = counted(store);
    const [started, finish] = [deferred(), deferred()];
    const worker = new Worker(counting, { concurrency: 1, pollMax: "60s" }).register(
      Task,
      async ({ n }) => {
        if (n !== 0) return;
        started.resolve();
        await finish.promise;
      },
    );
    await queue.enqueue(Task({ n: 0 }));
    await running(worker, async () => {
      await started.promise;
      const before = counts.claims;
      for (let n = 1; n <= 200; n += 1) await queue.enqueue(Task({ n }));
      expect(counts.claims).toBe(before);
      finish.resolve();
      await until(
        async () =>
          (await queue.jobs({ kind: Task.kind, status: "pending", limit: 1 })).jobs.length === 0,
      );
      await wait(100);
      expect(counts.empty).toBeLessThanOrEqual(5);
    });
  });
});
