import { Backoff, defineTask, type WorkerId } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import { TcpProxy } from "@venturi-tooling/testing/tcp-proxy";
import * as v from "valibot";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { claimAndDie } from "./testing/gone.ts";
import { running } from "./testing/running.ts";
import { deferred, until } from "./testing/signals.ts";

const { pool, url } = await testDatabase();
const store = await PostgresStore.connect({ connectionString: url });
const queue = new Queue(store);
const payload = v.object({ n: v.number() });

expectNoWarnings();
afterAll(() => store.close());
afterEach(() => expectInvariants(pool));

const outcomes = async (id: string) => (await queue.journal(id)).map(({ outcome }) => outcome);

/** An observer that trusts a silence of its own workerTimeout, and sleeps for a minute unless woken. */
const observer = { workerTimeout: 300, pollMax: "60s", jitterFraction: 0 } as const;

describe("a recovery", () => {
  test("of a thousand claims is done within ten seconds", async () => {
    const Task = defineTask({
      kind: "thousand",
      payload,
      backoff: new Backoff({ base: "1h", cap: "1h" }),
    });
    const ids = await queue.enqueueMany(Array.from({ length: 1_000 }, (_, n) => Task({ n })));
    await claimAndDie(store, { kind: Task.kind, jobs: 1_000, leaseMs: 1 });
    await pool.query("update venturi_queue set failure_count = 2 where claimed_by is not null");
    await pool.query(
      "insert into venturi_journal (recorded_at, started_at, job_id, kind_id, run_no, failure_count, outcome) select now(), now(), job_id, kind_id, g, g, 'r' from venturi_queue, generate_series(-1, 0) g where claimed_by is not null",
    );
    const worker = new Worker(store, observer).register(Task, () => undefined);
    await running(worker, () =>
      until(
        async () =>
          (await queue.jobs({ ids, status: "pending", limit: 1_000 })).jobs.length === 1_000,
        {
          withinMs: 10_000,
        },
      ),
    );
    await pool.query("truncate venturi_jobs, venturi_queue, venturi_journal, venturi_dead");
  });

  test("obeys the task's own backoff", async () => {
    const Task = defineTask({
      kind: "own_backoff",
      payload,
      backoff: new Backoff({ base: "100s", cap: "300s" }),
    });
    const id = await queue.enqueue(Task({ n: 1 }));
    const failing = new Worker(store).register(Task, () => {
      throw new Error("no");
    });
    for (let run = 0; run < 2; run += 1) await failing.runOnce();
    await claimAndDie(store, { kind: Task.kind });
    const worker = new Worker(store, observer).register(Task, () => undefined);
    await running(worker, () =>
      until(async () => (await outcomes(id)).includes("stale-recovered")),
    );
    const entry = (await queue.journal(id)).at(-1);
    const visibleAt = (await queue.job(id))?.visibleAt?.getTime() ?? 0;
    expect(visibleAt - (entry?.recordedAt.getTime() ?? 0)).toBe(100_000);
  });

  test("of a payload that does not decode, or of a task whose backoff throws, is one like any other", async () => {
    const Broken = defineTask({
      kind: "broken_hook",
      payload,
      backoff: () => {
        throw new Error("no backoff today");
      },
    });
    const Poison = defineTask({ kind: "poison", payload });
    const [broken, poison] = await queue.enqueueMany([Broken({ n: 1 }), Poison({ n: 1 })]);
    await claimAndDie(store, { kind: Broken.kind });
    await claimAndDie(store, { kind: Poison.kind });
    await pool.query(`update venturi_jobs set payload = '{"n": "x"}' where venturi_ulid(id) = $1`, [
      poison,
    ]);
    const worker = new Worker(store, observer)
      .register(Broken, () => undefined)
      .register(Poison, () => undefined);
    await running(worker, () =>
      until(async () => {
        const ended = await Promise.all([broken, poison].map((id) => outcomes(id as string)));
        return ended.every((journal) => journal.length === 2);
      }),
    );
    expect(await outcomes(broken as string)).toEqual(["stale-recovered", "completed"]);
    expect(await outcomes(poison as string)).toEqual(["stale-recovered", "dead"]);
  });

  test.each([
    ["a backoff that throws", "recoverer_throws"],
    ["a payload that does not decode", "recoverer_undecodable"],
    ["a kind that the recoverer does not know", "recoverer_unknown"],
  ])("waits as the recoverer's backoff says for %s", async (_, kind) => {
    const Task = defineTask({
      kind,
      payload,
      backoff:
        kind === "recoverer_throws"
          ? () => {
              throw new Error("no backoff today");
            }
          : new Backoff({ base: "100s", cap: "300s" }),
    });
    const id = await queue.enqueue(Task({ n: 1 }));
    const atOnce = new Backoff({ base: 1, cap: 1 });
    const failing = new Worker(store, { backoff: atOnce }).register(Task, () => {
      throw new Error("no");
    });
    for (let run = 0; run < 2; run += 1) await failing.runOnce();
    await claimAndDie(store, { kind });
    if (kind === "recoverer_undecodable")
      await pool.query(
        `update venturi_jobs set payload = '{"n": "x"}' where venturi_ulid(id) = $1`,
        [id],
      );
    const Bystander = defineTask({ kind: `${kind}_bystander`, payload });
    const worker = new Worker(store, {
      ...observer,
      backoff: new Backoff({ base: "50s", cap: "300s" }),
    }).register(Bystander, () => undefined);
    if (kind !== "recoverer_unknown") worker.register(Task, () => undefined);
    await running(worker, () => until(async () => (await outcomes(id)).length === 3));
    const entry = (await queue.journal(id)).at(-1);
    expect(entry?.outcome).toBe("stale-recovered");
    const visibleAt = (await queue.job(id))?.visibleAt?.getTime() ?? 0;
    expect(visibleAt - (entry?.recordedAt.getTime() ?? 0)).toBe(50_000);
  });

  test("of a kind that the recoverer does not know makes it pending again, and no more", async () => {
    const Unknown = defineTask({ kind: "unknown", payload });
    const Known = defineTask({ kind: "known", payload });
    const id = await queue.enqueue(Unknown({ n: 1 }));
    await claimAndDie(store, { kind: Unknown.kind });
    const worker = new Worker(store, observer).register(Known, () => undefined);
    await running(worker, () => until(async () => (await outcomes(id)).length > 0));
    expect(await queue.job(id)).toMatchObject({ status: "pending", failureCount: 1, runCount: 1 });
  });

  test("at the backstop that the claim carried is a death that says why, whatever the recoverer's backstop is", async () => {
    const Task = defineTask({ kind: "killer", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const Other = defineTask({ kind: "bystander", payload });
    const worker = new Worker(store, { ...observer, backstop: null }).register(
      Other,
      () => undefined,
    );
    for (let failures = 1; failures <= 3; failures += 1) {
      await claimAndDie(store, { kind: Task.kind, backstop: 3 });
      await running(
        new Worker(store, { ...observer, backstop: null }).register(Other, () => undefined),
        () => until(async () => (await outcomes(id)).length === failures),
      );
    }
    await worker.stop();
    expect(await outcomes(id)).toEqual(["stale-recovered", "stale-recovered", "dead"]);
    expect(await queue.job(id)).toMatchObject({ status: "dead", failureCount: 3 });
    expect((await queue.journal(id)).at(-1)?.note).toMatch(/run 3 was lost.*backstop of 3/);
  });

  test("finds claims whose worker has no row at all", async () => {
    const Task = defineTask({ kind: "orphan", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const dead = await claimAndDie(store, { kind: Task.kind });
    await pool.query("delete from venturi_workers where id = $1", [dead]);
    const worker = new Worker(store, observer).register(Task, () => undefined);
    await running(worker, () => until(async () => (await outcomes(id)).includes("completed")));
    expect(await outcomes(id)).toEqual(["stale-recovered", "completed"]);
  });

  test("goes on while every slot is busy", async () => {
    const Task = defineTask({ kind: "busy", payload });
    const [stuck] = await queue.enqueueMany([Task({ n: 1 })]);
    await claimAndDie(store, { kind: Task.kind });
    await queue.enqueue(Task({ n: 2 }));
    const finish = deferred();
    const worker = new Worker(store, { ...observer, concurrency: 1 }).register(Task, ({ n }) =>
      n === 2 ? finish.promise : undefined,
    );
    await running(worker, async () => {
      await until(async () => (await outcomes(stuck as string)).includes("stale-recovered"));
      finish.resolve();
    });
  });
});

test("a worker that starts just after an outage takes nothing from those that were cut off and live", async () => {
  const Task = defineTask({ kind: "cut_off", payload });
  const Other = defineTask({ kind: "cut_off_bystander", payload });
  const id = await queue.enqueue(Task({ n: 1 }));
  const proxy = await TcpProxy.before(url);
  const through = await PostgresStore.connect({ connectionString: proxy.url });
  const [started, finish] = [deferred(), deferred()];
  const cutOff = new Worker(through, { name: "cut off", workerTimeout: "3s" }).register(
    Task,
    () => {
      started.resolve();
      return finish.promise;
    },
  );
  const fresh = new Worker(store, { name: "fresh" }).register(Other, () => undefined);
  const is = async (name: string, condition: string) => {
    const { rows } = await pool.query(
      `select from venturi_workers where name = $1 and stopping_at is null and ${condition}`,
      [name],
    );
    return rows.length > 0;
  };
  await running(cutOff, async () => {
    await started.promise;
    proxy.mode = "refuse";
    // The server has been up for as long too: nothing but its own start holds the fresh worker back.
    await until(() => is("cut off", "beat_at < clock_timestamp() - interval '3 s'"));
    await running(fresh, async () => {
      // It has heard that the other is dead.
      await until(() => is("fresh", "beat_at > started_at"));
      proxy.mode = "pass";
      await until(() => is("cut off", "beat_at > clock_timestamp() - interval '1 s'"));
      finish.resolve();
      await until(async () => (await outcomes(id)).length > 0);
    });
  });
  expect(await outcomes(id)).toEqual(["completed"]);
  await through.close();
  await proxy.close();
});

test("two workers with one name are told apart", async () => {
  const Task = defineTask({ kind: "namesakes", payload });
  const ids = await queue.enqueueMany([Task({ n: 1 }), Task({ n: 2 })]);
  const first = await claimAndDie(store, { kind: Task.kind });
  const second = await claimAndDie(store, { kind: Task.kind });
  const settlement = {
    outcome: "completed",
    delayMs: 0,
    runAt: null,
    carry: null,
    note: null,
    attachment: null,
    detail: null,
  } as const;
  const settle = async (worker: WorkerId, jobId: string | undefined) => {
    const settlements = [{ ...settlement, jobId: jobId as string, runCount: 1 }];
    return (await store.settle({ worker, settlements })).verdicts[0];
  };
  expect(await settle(second, ids[0])).toBe("lost");
  expect(await settle(first, ids[1])).toBe("lost");
  expect(await settle(first, ids[0])).toBe("applied");
  expect(await settle(second, ids[1])).toBe("applied");
});
