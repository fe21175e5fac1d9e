import { type ClaimRequest, defineTask, isVenturiError } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import { running } from "./testing/running.ts";
import { deferred, until } from "./testing/signals.ts";
import { wrapStore } from "./testing/wrap-store.ts";

const database = await testDatabase();
const store = await PostgresStore.connect({ connectionString: database.url });
const queue = new Queue(store);
const payload = v.object({ n: v.number() });

expectNoWarnings();
afterAll(() => store.close());
afterEach(() => expectInvariants(database.pool));

const outcomes = async (id: string) => (await queue.journal(id)).map(({ outcome }) => outcome);
const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

describe("a handler whose lease ends", () => {
  test("is told a little before that, so that it never overlaps the next run", async () => {
    const Task = defineTask({ kind: "honours", payload, lease: "3s" });
    const id = await queue.enqueue(Task({ n: 1 }));
    const spans: { from: number; to: number }[] = [];
    const codes: unknown[] = [];
    // Timers fire in their order, however late a busy machine is with all of them.
    let isPassed = false;
    const worker = () =>
      new Worker(store).register(Task, async (_, ctx) => {
        const from = performance.now();
        if (ctx.runCount === 1) {
          const deadline = setTimeout(() => {
            isPassed = true;
          }, ctx.deadline.getTime() - Date.now());
          await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
          clearTimeout(deadline);
          codes.push(isVenturiError(ctx.signal.reason) && ctx.signal.reason.code);
        }
        spans.push({ from, to: performance.now() });
        if (ctx.runCount === 1) throw new Error("gave up");
      });
    await running([worker(), worker()], () =>
      until(async () => (await outcomes(id)).includes("completed")),
    );
    expect(codes).toEqual(["lease-ended"]);
    expect(isPassed).toBe(false);
    expect(spans[1]?.from).toBeGreaterThanOrEqual(spans[0]?.to ?? Number.POSITIVE_INFINITY);
    expect(await outcomes(id)).toEqual(["retried", "completed"]);
  });

  test("and that goes on all the same is not started again beside itself, and its result is refused", async () => {
    const Task = defineTask({ kind: "ignores", payload, lease: "1s" });
    const id = await queue.enqueue(Task({ n: 1 }));
    const { logger, records } = recordingLogger();
    const finish = deferred();
    let now = 0;
    let most = 0;
    const worker = new Worker(store, { concurrency: 2, logger }).register(Task, async (_, ctx) => {
      now += 1;
      most = Math.max(most, now);
      if (ctx.runCount === 1) await finish.promise;
      now -= 1;
    });
    await running(worker, async () => {
      await until(async () => (await outcomes(id)).includes("stale-recovered"), {
        withinMs: 2_000,
      });
      expect(await queue.job(id)).toMatchObject({ status: "pending", failureCount: 1 });
      // Time to start it again, for a worker that would.
      await wait(500);
      finish.resolve();
      await until(async () => (await outcomes(id)).includes("completed"));
    });
    expect(most).toBe(1);
    expect(await outcomes(id)).toEqual(["stale-recovered", "completed"]);
    const lost = records.filter(({ message }) => message.includes("no longer held its claim"));
    expect(lost).toHaveLength(1);
    expect(lost[0]).toMatchObject({ level: "warn", fields: { jobId: id, runCount: 1 } });
  });

  test("loses against the worker that has run the job meanwhile", async () => {
    const Task = defineTask({ kind: "fenced", payload, lease: "1s" });
    const id = await queue.enqueue(Task({ n: 1 }));
    const [started, finish, ended] = [deferred(), deferred(), deferred()];
    const slow = new Worker(store, { name: "slow" }).register(Task, async (_, ctx) => {
      ctx.attach("slow");
      started.resolve();
      await finish.promise;
      ended.resolve();
    });
    const quick = new Worker(store, { name: "quick" }).register(Task, (_, ctx) =>
      ctx.attach("quick"),
    );
    await running(slow, async () => {
      await started.promise;
      await running(quick, () => until(async () => (await outcomes(id)).includes("completed")));
      finish.resolve();
      await ended.promise;
    });
    const journal = await queue.journal(id);
    expect(journal.map(({ outcome, worker }) => [outcome, worker])).toEqual([
      ["stale-recovered", "slow"],
      ["completed", "quick"],
    ]);
    expect(journal.at(-1)?.attachment).toBe("quick");
  });

  test("still counts towards concurrency and cap", async () => {
    const Task = defineTask({ kind: "counted", payload, lease: "1s" });
    await queue.enqueueMany(Array.from({ length: 6 }, (_, n) => Task({ n })));
    let now = 0;
    let most = 0;
    const worker = new Worker(store, { concurrency: 4 }).register(
      Task,
      async ({ n }, ctx) => {
        now += 1;
        most = Math.max(most, now);
        if (n === 0 && ctx.runCount === 1) await wait(2_000);
        now -= 1;
      },
      { cap: 2 },
    );
    await running(worker, () =>
      until(
        async () => (await queue.jobs({ kind: Task.kind, status: "completed" })).jobs.length === 6,
      ),
    );
    expect(most).toBe(2);
  });
});

test("a job that another worker took while its handler goes on here is not started beside itself", async () => {
  const Task = defineTask({ kind: "taken_back", payload });
  const id = await queue.enqueue(Task({ n: 1 }));
  const finish = deferred();
  let now = 0;
  let most = 0;
  const worker = new Worker(store, { concurrency: 4 }).register(Task, async (_, ctx) => {
    now += 1;
    most = Math.max(most, now);
    if (ctx.runCount === 1) await finish.promise;
    now -= 1;
  });
  await running(worker, async () => {
    await until(() => now === 1);
    // As another worker does that believes this one dead; this one cannot know.
    const { rows } = await database.pool.query(
      "update venturi_workers set beat_at = beat_at - interval '1 h' where stopping_at is null returning id",
    );
    await store.recover({
      recoveries: [
        {
          jobId: id,
          runCount: 1,
          holder: rows[0].id,
          outcome: "stale-recovered",
          delayMs: 0,
          note: "taken",
        },
      ],
    });
    expect(await outcomes(id)).toEqual(["stale-recovered"]);
    await wait(300);
    expect(await queue.job(id)).toMatchObject({ status: "pending", runCount: 1 });
    finish.resolve();
    await until(async () => (await outcomes(id)).includes("completed"));
  });
  expect(most).toBe(1);
  expect(await outcomes(id)).toEqual(["stale-recovered", "completed"]);
});

describe("the lease of a claim", () => {
  const leaseOf = async (id: string) => {
    const { rows } = await database.pool.query(
      "select (extract(epoch from lease_expires_at - claimed_at) * 1000)::float8 as ms from venturi_queue where venturi_ulid(job_id) = $1",
      [id],
    );
    return rows[0].ms as number;
  };

  test("is the job's own, evaluated at enqueue, before the task's and the worker's", async () => {
    const PerJob = defineTask({ kind: "per_job", payload, lease: ({ n }) => n * 1_000 });
    const Constant = defineTask({ kind: "constant", payload, lease: "7s" });
    const Plain = defineTask({ kind: "plain_lease", payload });
    const leases: number[] = [];
    await queue.enqueueMany([
      PerJob({ n: 3 }),
      PerJob({ n: 5 }),
      Constant({ n: 1 }),
      Plain({ n: 1 }),
    ]);
    const note = async (_: unknown, { id }: { readonly id: string }) => {
      leases.push(await leaseOf(id));
    };
    const worker = new Worker(store, { lease: "11s", concurrency: 1, priorityRatio: null })
      .register(PerJob, note)
      .register(Constant, note)
      .register(Plain, note);
    await worker.runOnce();
    expect(leases.sort((a, b) => a - b)).toEqual([3_000, 5_000, 7_000, 11_000]);
  });

  test("is, where the task says it as a constant, that of the worker's task; where as a function, that of the enqueue", async () => {
    const enqueuedAs = [
      defineTask({ kind: "constant_travels", payload, lease: "7s" }),
      defineTask({ kind: "function_stays", payload, lease: () => 7_000 }),
    ];
    const runAs = [
      defineTask({ kind: "constant_travels", payload, lease: "9s" }),
      defineTask({ kind: "function_stays", payload, lease: () => 9_000 }),
    ];
    await queue.enqueueMany(enqueuedAs.map((Task) => Task({ n: 1 })));
    const leases = new Map<string, number>();
    const worker = new Worker(store);
    for (const Task of runAs)
      worker.register(Task, async (_, { id, kind }) => {
        leases.set(kind, await leaseOf(id));
      });
    await worker.runOnce();
    expect(Object.fromEntries(leases)).toEqual({ constant_travels: 9_000, function_stays: 7_000 });
  });

  test("is clamped to 1 s … 365 d by task and worker", async () => {
    const Short = defineTask({ kind: "short_job", payload, lease: () => 0 });
    const Endless = defineTask({
      kind: "endless_job",
      payload,
      lease: () => Number.POSITIVE_INFINITY,
    });
    const Nothing = defineTask({ kind: "worker_lease", payload });
    const leases = new Map<string, number>();
    await queue.enqueueMany([Short({ n: 1 }), Endless({ n: 1 }), Nothing({ n: 1 })]);
    const note = async (
      _: unknown,
      { id, kind }: { readonly id: string; readonly kind: string },
    ) => {
      leases.set(kind, await leaseOf(id));
    };
    const worker = new Worker(store, { lease: 0 })
      .register(Short, note)
      .register(Endless, note)
      .register(Nothing, note);
    expect(await worker.runOnce()).toMatchObject({ completed: 3 });
    expect(Object.fromEntries(leases)).toEqual({
      short_job: 1_000,
      endless_job: 365 * 86_400_000,
      worker_lease: 1_000,
    });
  });
});

test("a lease of a year sets off nothing", async () => {
  const Task = defineTask({ kind: "year", payload, lease: "365d" });
  await queue.enqueue(Task({ n: 1 }));
  const aborted: boolean[] = [];
  const worker = new Worker(store).register(Task, async (_, ctx) => {
    void ctx.signal;
    await wait(100);
    aborted.push(ctx.signal.aborted);
  });
  await worker.runOnce();
  expect(aborted).toEqual([false]);
});

describe("a claim whose answer was lost", () => {
  test("is undone before the next one, without a trace, and the job runs", async () => {
    const Task = defineTask({ kind: "lost_answer", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    let losses = 0;
    const lossy = wrapStore(store, (plain) => ({
      claim: async (request) => {
        const result = await plain.claim(request);
        if (losses > 0 || result.jobs.length === 0) return result;
        losses += 1;
        throw Object.assign(new Error("Connection terminated unexpectedly"), {
          code: "ECONNRESET",
        });
      },
    }));
    const worker = new Worker(lossy, { pollMax: "60s" }).register(Task, () => undefined);
    await running(worker, () =>
      until(async () => (await outcomes(id)).length > 0, { withinMs: 5_000 }),
    );
    expect(losses).toBe(1);
    expect(await queue.job(id)).toMatchObject({
      status: "completed",
      runCount: 1,
      failureCount: 0,
    });
    expect(await outcomes(id)).toEqual(["completed"]);
  });

  test.each(["before the worker stops", "just after its first look at the stop"])(
    "and that is carried out %s is handed back, and the worker goes silent rather than say goodbye",
    async (when) => {
      const Task = defineTask({ kind: `carried out ${when}`, payload });
      let lost: ClaimRequest | null = null;
      let claims = 0;
      let looks = 0;
      let goodbyes = 0;
      let isStopping = false;
      const late = wrapStore(store, (plain) => ({
        claim: async (request) => {
          claims += 1;
          if (claims > 1) return { jobs: [], waitMs: null, blocked: false };
          lost = request;
          throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
        },
        findStale: async (request) => {
          const found = await plain.findStale(request);
          if (request.orphans) return found;
          looks += 1;
          if (isStopping) {
            isStopping = false;
            await carryOut();
          }
          return found;
        },
        stopWorker: async (request) => {
          goodbyes += 1;
          return plain.stopWorker(request);
        },
      }));
      const carryOut = async () => {
        if (lost !== null) expect((await store.claim(lost)).jobs).toHaveLength(1);
      };
      const worker = new Worker(late, { pollMax: "60s" }).register(Task, () => undefined);
      let id = "";
      const [report] = await running(worker, async () => {
        await until(() => looks === 1 && claims === 2);
        id = await queue.enqueue(Task({ n: 1 }));
        if (when.startsWith("before")) await carryOut();
        else isStopping = true;
      });
      expect(report?.unreleased).toEqual([]);
      expect(await queue.job(id)).toMatchObject({ status: "pending", runCount: 0 });
      expect(await outcomes(id)).toEqual([]);
      expect(looks).toBe(3);
      expect(goodbyes).toBe(0);
    },
  );
});
