import { Backoff, defineTask, type JobId, type Task } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { Worker, type WorkerOptions } from "./index.ts";
import { WorkerProcess } from "./testing/child-process.ts";
import { claimAndDie } from "./testing/gone.ts";
import { running } from "./testing/running.ts";
import { until } from "./testing/signals.ts";

const { pool, url } = await testDatabase();
const store = await PostgresStore.connect({ connectionString: url });
const queue = new Queue(store);
const payload = v.object({ n: v.number() });

expectNoWarnings();
afterAll(() => store.close());
afterEach(() => expectInvariants(pool));

const outcomes = async (id: string) => (await queue.journal(id)).map(({ outcome }) => outcome);
const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** A process that holds a job of the task, which it would do for a minute. */
async function holder(
  task: Task<string, { n: number }, { n: number }, undefined>,
  worker: WorkerOptions,
): Promise<{ id: JobId; child: WorkerProcess }> {
  const id = await queue.enqueue(task({ n: 1 }));
  const child = new WorkerProcess({ url, kind: task.kind, handlerMs: 60_000, worker });
  await child.said(`started ${id}`);
  return { id, child };
}

/** An observer that trusts a silence of its own workerTimeout, and sleeps for a minute unless woken. */
const observer = { workerTimeout: 300, pollMax: "60s", jitterFraction: 0 } as const;

describe("a process that is killed", () => {
  test("with a long lease: its job runs elsewhere within workerTimeout + 2 s", async () => {
    const Task = defineTask({ kind: "killed", payload });
    const { id, child } = await holder(Task, { workerTimeout: "1s", name: "child" });
    const worker = new Worker(store, { ...observer, workerTimeout: "1s" }).register(
      Task,
      () => undefined,
    );
    await running(worker, async () => {
      expect(await child.kill("SIGKILL")).toBe("SIGKILL");
      const at = performance.now();
      await until(async () => (await outcomes(id)).includes("completed"));
      expect(performance.now() - at).toBeLessThan(3_000);
    });
    expect(
      (await queue.journal(id)).map(({ outcome, worker }) => [outcome, worker === "child"]),
    ).toEqual([
      ["stale-recovered", true],
      ["completed", false],
    ]);
    expect(await queue.job(id)).toMatchObject({ failureCount: 1, runCount: 2 });
  });

  test("with a lease of a second: its job runs elsewhere within three, long before its workerTimeout", async () => {
    const Task = defineTask({ kind: "killed_short", payload });
    const { id, child } = await holder(Task, { workerTimeout: "30s", lease: "1s" });
    const worker = new Worker(store, { ...observer, workerTimeout: "30s" }).register(
      Task,
      () => undefined,
    );
    await running(worker, async () => {
      await child.kill("SIGKILL");
      await until(async () => (await outcomes(id)).includes("completed"), { withinMs: 3_000 });
    });
    expect(await outcomes(id)).toEqual(["stale-recovered", "completed"]);
  });

  test("by its own job, again and again: the job is dead at its backstop, and not in a loop", async () => {
    const Task = defineTask({ kind: "poison_process", payload });
    const Other = defineTask({ kind: "poison_bystander", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const options = { backstop: 3, workerTimeout: 300, pollMax: "100ms" } as const;
    const common = { url, kind: Task.kind, handlerMs: 0, worker: options };
    const recoverer = new Worker(store, {
      ...observer,
      backstop: null,
      backoff: new Backoff({ base: 1, cap: 1 }),
    }).register(Other, () => undefined);
    await running(recoverer, async () => {
      for (let death = 1; death <= 3; death += 1) {
        const child = new WorkerProcess({ ...common, isPoison: true });
        expect(await child.ended).toBe("SIGKILL");
        await until(async () => (await outcomes(id)).length === death);
      }
      // A process that comes after that finds nothing to die of.
      const survivor = new WorkerProcess({ ...common, isPoison: true });
      await survivor.said("ready");
      await wait(500);
      expect(survivor.isAlive).toBe(true);
      expect(await survivor.kill("SIGTERM")).toBe(0);
    });
    expect(await outcomes(id)).toEqual(["stale-recovered", "stale-recovered", "dead"]);
    expect(await queue.job(id)).toMatchObject({ status: "dead", failureCount: 3, runCount: 3 });
  });

  test("in the middle of much work: nothing is lost and nothing completes twice", async () => {
    const Task = defineTask({ kind: "killed_middle", payload });
    const options = { workerTimeout: "1s", concurrency: 4 } as const;
    const common = { url, kind: Task.kind, handlerMs: 20, worker: options };
    const children = [new WorkerProcess(common), new WorkerProcess(common)];
    // Started late, the one would find that the other has done everything.
    for (const child of children) await child.said("ready");
    const ids = await queue.enqueueMany(Array.from({ length: 300 }, (_, n) => Task({ n })));
    for (const child of children) await child.said("started");
    await wait(100);
    await children[0]?.kill("SIGKILL");
    await until(
      async () =>
        (await queue.jobs({ ids, status: "completed", limit: 1_000 })).jobs.length === 300,
      {
        withinMs: 20_000,
      },
    );
    expect(await children[1]?.kill("SIGTERM")).toBe(0);
    expect(children[1]?.lines.at(-1)).toBe("stopped 0");
  });
});

describe("a live worker", () => {
  test("keeps its claims, however long its handlers take: beats count, not leases", async () => {
    const Task = defineTask({ kind: "alive", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const busy = new Worker(store, { workerTimeout: "1.5s" }).register(Task, () => wait(5_000));
    const idle = new Worker(store, observer).register(Task, () => undefined);
    await running([busy, idle], () => until(async () => (await outcomes(id)).length > 0));
    expect(await outcomes(id)).toEqual(["completed"]);
  });

  test("keeps them while synchronous work blocks its event loop for less than it takes to be missed", async () => {
    const Task = defineTask({ kind: "blocked", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const child = new WorkerProcess({
      url,
      kind: Task.kind,
      handlerMs: 300,
      blockMs: 3_000,
      worker: { workerTimeout: "5s" },
    });
    await child.said(`started ${id}`);
    const idle = new Worker(store, observer).register(Task, () => undefined);
    await running(idle, () => until(async () => (await outcomes(id)).length > 0));
    expect(await child.kill("SIGTERM")).toBe(0);
    expect(await outcomes(id)).toEqual(["completed"]);
    expect(await queue.job(id)).toMatchObject({ runCount: 1 });
  });

  test("is judged by its own workerTimeout, not by the observer's", async () => {
    const Task = defineTask({ kind: "own_timeout", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const dead = await claimAndDie(store, { kind: Task.kind, workerTimeoutMs: 60_000 });
    const worker = new Worker(store, observer).register(Task, () => undefined);
    await running(worker, () => wait(1_500));
    expect(await outcomes(id)).toEqual([]);
    await pool.query("update venturi_workers set worker_timeout_ms = 300 where id = $1", [dead]);
    await running(
      new Worker(store, observer).register(Task, () => undefined),
      () => until(async () => (await outcomes(id)).includes("completed")),
    );
  });
});
