import { defineTask, isVenturiError, type JobId, Outcome } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterEach, describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { claimAndDie } from "./testing/gone.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import { running } from "./testing/running.ts";
import { deferred, until } from "./testing/signals.ts";
import { wrapStore } from "./testing/wrap-store.ts";

const database = await testDatabase();
const store = new PostgresStore({ pool: database.pool });
const queue = new Queue(store);
const payload = v.object({ n: v.number() });
const zero = { completed: 0, paused: 0, retried: 0, dead: 0 };

afterEach(() => expectInvariants(database.pool));

const codeOf = (error: unknown) => (isVenturiError(error) ? error.code : undefined);

describe("runOnce", () => {
  test("runs everything that is due, more than fits at once, and says how it ended", async () => {
    const Task = defineTask({ kind: "all", payload, backstop: 1 });
    await queue.enqueueMany(Array.from({ length: 50 }, (_, n) => Task({ n })));
    await queue.enqueue(Task({ n: 0 }), { delay: "1h" });
    const worker = new Worker(store, { concurrency: 4 }).register(Task, ({ n }) => {
      if (n % 10 === 1) throw new Error("no");
      return n % 10 === 2 ? Outcome.pauseFor("1h") : undefined;
    });
    expect(await worker.runOnce()).toEqual({ completed: 40, paused: 5, retried: 0, dead: 5 });
  });

  test("runs each job at most once, also one that is due again at once", async () => {
    const Task = defineTask({ kind: "once", payload });
    await queue.enqueueMany([Task({ n: 1 }), Task({ n: 2 })]);
    const runs: number[] = [];
    const worker = new Worker(store).register(Task, ({ n }) => {
      runs.push(n);
      if (n === 1) throw new Error("no");
      return Outcome.pauseFor(0);
    });
    expect(await worker.runOnce()).toEqual({ ...zero, paused: 1, retried: 1 });
    expect(runs.sort()).toEqual([1, 2]);
    expect(await worker.runOnce()).toEqual({ ...zero, paused: 1, retried: 1 });
    expect(runs.sort()).toEqual([1, 1, 2, 2]);
  });

  test("counts a run when the store has confirmed its end, and one whose claim was lost not at all", async () => {
    const Task = defineTask({ kind: "confirmed", payload });
    const [kept, lost] = (await queue.enqueueMany([Task({ n: 0 }), Task({ n: 1 })])) as [
      JobId,
      JobId,
    ];
    const { logger, records } = recordingLogger();
    const worker = new Worker(store, { logger }).register(Task, async ({ n }, ctx) => {
      // Others recover the run that this worker believes to hold.
      if (n === 1) {
        const { rows } = await database.pool.query(
          `update venturi_queue set lease_expires_at = clock_timestamp() - interval '1 s'
          where venturi_ulid(job_id) = $1 returning claimed_by as holder`,
          [ctx.id],
        );
        const recovery = { jobId: ctx.id, runCount: ctx.runCount, holder: rows[0].holder };
        const rest = { outcome: "stale-recovered", delayMs: 3_600_000, note: "lost" } as const;
        await store.recover({ recoveries: [{ ...recovery, ...rest }] });
      }
    });
    expect(await worker.runOnce()).toEqual({ ...zero, completed: 1 });
    expect(await queue.job(kept)).toMatchObject({ status: "completed" });
    expect(await queue.job(lost)).toMatchObject({ status: "pending", failureCount: 1 });
    const told = records.filter(({ message }) => message.includes("no longer held its claim"));
    expect(told).toMatchObject([{ level: "warn", fields: { jobId: lost } }]);
    await queue.cancel(lost);
  });

  test("runs what its own handlers enqueue", async () => {
    const Task = defineTask({ kind: "chain", payload });
    await queue.enqueue(Task({ n: 5 }));
    const worker = new Worker(store, { concurrency: 2 }).register(Task, async ({ n }) => {
      if (n > 0) await queue.enqueue(Task({ n: n - 1 }));
    });
    expect(await worker.runOnce()).toEqual({ ...zero, completed: 6 });
  });

  test("with nothing due it returns zeros, and without kinds as well", async () => {
    const Task = defineTask({ kind: "nothing", payload });
    const worker = new Worker(store).register(Task, () => undefined);
    expect(await worker.runOnce()).toEqual(zero);
    expect(await new Worker(store).runOnce()).toEqual(zero);
  });

  test("beats meanwhile", async () => {
    const Task = defineTask({ kind: "beats", payload });
    await queue.enqueue(Task({ n: 1 }));
    let beats = 0;
    const counting = wrapStore(store, (plain) => ({
      beat: (request) => {
        beats += 1;
        return plain.beat(request);
      },
    }));
    const worker = new Worker(counting, { heartbeat: 100 }).register(Task, () =>
      until(() => beats >= 4),
    );
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
  });

  test("runs jobs whose worker has died, found before the first claim", async () => {
    const Task = defineTask({ kind: "orphaned", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const dead = await claimAndDie(store, { kind: Task.kind });
    await database.pool.query(
      "update venturi_workers set beat_at = clock_timestamp() - interval '1 h' where id = $1",
      [dead],
    );
    await database.pool.query(
      "update venturi_queue set lease_expires_at = clock_timestamp() - interval '1 s' where claimed_by = $1",
      [dead],
    );
    const calls: string[] = [];
    const watched = wrapStore(store, (plain) => ({
      recover: async (request) => {
        const result = await plain.recover(request);
        calls.push("recovered");
        return result;
      },
      claim: (request) => {
        calls.push("claims");
        return plain.claim(request);
      },
    }));
    const rescuer = new Worker(watched).register(Task, () => undefined);
    expect(await rescuer.runOnce()).toMatchObject({ completed: 1 });
    expect(calls.slice(0, 2)).toEqual(["recovered", "claims"]);
    const outcomes = (await queue.journal(id)).map(({ outcome }) => outcome);
    expect(outcomes).toEqual(["stale-recovered", "completed"]);
  });

  test("takes what a dead worker holds, overdue or not, where no other lives", async () => {
    const Task = defineTask({ kind: "long_dead", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    // Whoever is left over from elsewhere has ended.
    await database.pool.query("update venturi_workers set stopping_at = clock_timestamp()");
    const dead = await claimAndDie(store, { kind: Task.kind });
    await database.pool.query(
      "update venturi_workers set beat_at = clock_timestamp() - interval '1 h' where id = $1",
      [dead],
    );
    const living = await store.startWorker({
      name: "living",
      kinds: [],
      pollMaxMs: 60_000,
      workerTimeoutMs: 60_000,
      shortestLeaseMs: 60_000,
    });
    const rescuer = new Worker(store).register(Task, () => undefined);
    expect(await rescuer.runOnce()).toEqual(zero);
    await store.stopWorker(living);
    expect(await rescuer.runOnce()).toEqual({ ...zero, completed: 1 });
    const outcomes = (await queue.journal(id)).map(({ outcome }) => outcome);
    expect(outcomes).toEqual(["stale-recovered", "completed"]);
  });

  test("stops when its signal aborts, and lets the running handler end", async () => {
    const Task = defineTask({ kind: "aborted", payload });
    const ids = await queue.enqueueMany([Task({ n: 1 }), Task({ n: 2 })]);
    const controller = new AbortController();
    const worker = new Worker(store, { concurrency: 1 }).register(Task, () => controller.abort());
    expect(await worker.runOnce({ signal: controller.signal })).toEqual({ ...zero, completed: 1 });
    expect((await queue.job(ids[1] as string))?.status).toBe("pending");
    expect(await worker.runOnce({ signal: AbortSignal.abort() })).toEqual(zero);
  });

  test("ends only when nothing waits, also of a kind that was at its cap", async () => {
    const Capped = defineTask({ kind: "once_capped", payload });
    const Free = defineTask({ kind: "once_free", payload });
    for (let round = 0; round < 5; round += 1) {
      await queue.enqueueMany(Array.from({ length: 40 }, (_, n) => Capped({ n })));
      await queue.enqueue(Free({ n: 0 }));
      const worker = new Worker(store, { concurrency: 10, prefetch: 0 })
        .register(Capped, () => new Promise((resolve) => setTimeout(resolve, 1)), { cap: 2 })
        .register(Free, () => undefined);
      expect(await worker.runOnce()).toEqual({ ...zero, completed: 41 });
    }
  });

  test("runs no job twice, however its claims and settlements cross", async () => {
    const Task = defineTask({ kind: "once_each", payload });
    const runs = new Map<number, number>();
    await queue.enqueueMany(Array.from({ length: 800 }, (_, n) => Task({ n })));
    const worker = new Worker(store, { concurrency: 1 }).register(Task, ({ n }) => {
      runs.set(n, (runs.get(n) ?? 0) + 1);
      return Outcome.pauseFor(0);
    });
    expect(await worker.runOnce()).toEqual({ ...zero, paused: 800 });
    expect([...runs.values()].every((count) => count === 1)).toBe(true);
  });

  test("rejects beside a run in progress, and a second one beside the first", async () => {
    const Task = defineTask({ kind: "beside", payload });
    await queue.enqueue(Task({ n: 1 }));
    const [started, finish] = [deferred(), deferred()];
    const worker = new Worker(store).register(Task, () => {
      started.resolve();
      return finish.promise;
    });
    const first = worker.runOnce();
    await started.promise;
    expect(codeOf(await worker.runOnce().catch((error: unknown) => error))).toBe("already-run");
    expect(codeOf(await worker.run().catch((error: unknown) => error))).toBe("already-run");
    finish.resolve();
    expect(await first).toMatchObject({ completed: 1 });
    await running(worker, async () => {
      expect(codeOf(await worker.runOnce().catch((error: unknown) => error))).toBe("already-run");
    });
  });

  test("rejects after a stop", async () => {
    const Task = defineTask({ kind: "stopped", payload });
    const worker = new Worker(store).register(Task, () => undefined);
    await worker.stop();
    expect(codeOf(await worker.runOnce().catch((error: unknown) => error))).toBe("closed");
  });

  test("rejects with not-migrated where the tables are missing", async () => {
    const Task = defineTask({ kind: "unmigrated", payload });
    const elsewhere = new PostgresStore({ pool: database.pool, prefix: "nowhere" });
    const worker = new Worker(elsewhere).register(Task, () => undefined);
    const error = await worker.runOnce().catch((error: unknown) => error);
    expect(codeOf(error)).toBe("not-migrated");
  });
});
