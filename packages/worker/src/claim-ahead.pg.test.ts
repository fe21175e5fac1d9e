import { defineTask, type HandBackRequest } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { WorkerProcess } from "./testing/child-process.ts";
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

/** A kind, and what enqueues so many jobs of it. */
function kindOf(kind: string) {
  const Task = defineTask({ kind, payload });
  const enqueue = (count: number, from = 0) =>
    queue.enqueueMany(Array.from({ length: count }, (_, n) => Task({ n: from + n })));
  const pending = async () => (await queue.jobs({ kind, status: "pending", limit: 1_000 })).jobs;
  const claimed = async () => (await queue.jobs({ kind, status: "claimed", limit: 1_000 })).jobs;
  const allDone = async () => (await pending()).length + (await claimed()).length === 0;
  return { Task, enqueue, pending, claimed, allDone };
}

/** A store that counts claims and notes how many jobs each brought. */
function watchClaims() {
  const brought: number[] = [];
  const watched = wrapStore(store, (plain) => ({
    claim: async (request) => {
      const result = await plain.claim(request);
      brought.push(result.jobs.length);
      return result;
    },
  }));
  return { brought, watched };
}

describe("jobs claimed ahead of a free slot", () => {
  test("start in their order as slots become free, never more than concurrency at once", async () => {
    const { Task, enqueue, claimed, pending } = kindOf("ahead");
    const ids = await enqueue(10);
    const started: number[] = [];
    const ends = Array.from({ length: 10 }, () => deferred());
    const worker = new Worker(store, { concurrency: 2, prefetch: 4 }).register(Task, ({ n }) => {
      started.push(n);
      return ends[n]?.promise;
    });
    await running(worker, async () => {
      await until(async () => (await claimed()).length === 6 && started.length > 0);
      expect(started).toEqual([0, 1]);
      expect(await pending()).toHaveLength(4);
      ends[1]?.resolve();
      await until(() => started.length === 3);
      for (const end of ends) end.resolve();
      await until(
        async () => (await queue.jobs({ ids, status: "completed" })).jobs.length === ids.length,
      );
    });
    expect(started).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    const [entry] = await queue.journal(ids[5] as string);
    expect(entry).toMatchObject({ outcome: "completed", runNo: 1 });
  });

  test("ask the database for nothing while all slots are busy and over half of them wait", async () => {
    const { Task, enqueue, allDone } = kindOf("ahead_quiet");
    await enqueue(20);
    const { brought, watched } = watchClaims();
    const ends: (() => void)[] = [];
    const worker = new Worker(watched, { concurrency: 2, prefetch: 4, pollMax: "20ms" }).register(
      Task,
      () => new Promise<void>((resolve) => ends.push(resolve)),
    );
    await running(worker, async () => {
      await until(() => brought.length === 1);
      // Wake-ups and polls change nothing.
      await enqueue(1, 100);
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect(brought).toEqual([6]);
      ends[0]?.();
      await until(() => ends.length === 3);
      expect(brought).toEqual([6]);
      ends[1]?.();
      await until(() => brought.length === 2);
      expect(brought).toEqual([6, 2]);
      const endless = setInterval(() => {
        for (const end of ends.splice(0)) end();
      }, 1);
      await until(allDone);
      clearInterval(endless);
      for (const end of ends.splice(0)) end();
    });
  });

  test("count towards the cap of their kind", async () => {
    const { Task, enqueue, claimed, allDone } = kindOf("ahead_capped");
    const other = kindOf("ahead_free");
    await enqueue(10);
    await other.enqueue(10);
    const end = deferred();
    const worker = new Worker(store, { concurrency: 4, prefetch: 8 })
      .register(Task, () => end.promise, { cap: 3 })
      .register(other.Task, () => end.promise);
    await running(worker, async () => {
      await until(async () => (await other.claimed()).length === 9);
      expect(await claimed()).toHaveLength(3);
      end.resolve();
      await until(allDone);
      await until(other.allDone);
    });
  });

  test("are handed back without a trace at a stop", async () => {
    const { Task, enqueue, claimed, pending } = kindOf("ahead_stop");
    const ids = await enqueue(8);
    const worker = new Worker(store, { concurrency: 1, prefetch: 5 }).register(
      Task,
      (_, { signal }) =>
        new Promise<void>((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        }),
    );
    const [report] = await running(worker, async () => {
      await until(async () => (await claimed()).length === 6);
    });
    expect(report?.unreleased).toEqual([]);
    const jobs = await pending();
    expect(jobs).toHaveLength(8);
    // Only the one that ran knows of it.
    expect(jobs.filter(({ runCount }) => runCount > 0).map(({ id }) => id)).toEqual([ids[0]]);
    const journals = await Promise.all(ids.map((id) => queue.journal(id)));
    expect(journals.map((entries) => entries.length)).toEqual([1, 0, 0, 0, 0, 0, 0, 0]);
  });

  test("are handed back after a third of their lease, and another worker runs them", async () => {
    const Task = defineTask({ kind: "ahead_lease", payload, lease: "1s" });
    const ids = await queue.enqueueMany([0, 1, 2].map((n) => Task({ n })));
    const end = deferred();
    const ranBy = new Map<number, string>();
    const workerOf = (name: string, prefetch: number) =>
      new Worker(store, { name, concurrency: 1, prefetch }).register(Task, async ({ n }, ctx) => {
        ranBy.set(n, name);
        if (n > 0) return;
        await ctx.extendLease("1m");
        await end.promise;
      });
    await running(workerOf("hoarder", 2), async () => {
      await until(() => ranBy.size === 1);
      await running(workerOf("helper", 0), async () => {
        await until(() => ranBy.size === 3, { withinMs: 3_000 });
        end.resolve();
        await until(async () => (await queue.jobs({ ids, status: "completed" })).jobs.length === 3);
      });
    });
    const jobs = await Promise.all(ids.map((id) => queue.job(id)));
    expect(jobs.map((job) => job?.runCount)).toEqual([1, 1, 1]);
    expect(jobs.map((job) => job?.failureCount)).toEqual([0, 0, 0]);
  });

  test("are handed back, not recovered, when the event loop was blocked past their lease", async () => {
    const Task = defineTask({ kind: "ahead_blocked", payload, lease: "1s" });
    const ids = await queue.enqueueMany([0, 1].map((n) => Task({ n })));
    const worker = new Worker(store, { concurrency: 1, prefetch: 1 }).register(Task, ({ n }) => {
      const until = performance.now() + (n === 0 ? 1_300 : 0);
      while (performance.now() < until);
    });
    await running(worker, () =>
      until(async () => (await queue.jobs({ ids, status: "completed" })).jobs.length === 2),
    );
    const [entry] = await queue.journal(ids[1] as string);
    expect(entry).toMatchObject({ outcome: "completed", runNo: 1 });
    expect(await queue.job(ids[1] as string)).toMatchObject({ runCount: 1, failureCount: 0 });
  });
});

test("a hand-back that is carried out late does not undo the next claim, whose handler runs", async () => {
  const Task = defineTask({ kind: "ahead_late", payload, lease: "3s" });
  const ids = await queue.enqueueMany([0, 1].map((n) => Task({ n })));
  const ends = [deferred(), deferred()];
  const started: number[] = [];
  const handedBack: HandBackRequest[] = [];
  const unanswered = wrapStore(store, (plain) => ({
    handBack: async (request) => {
      handedBack.push(request);
      if (handedBack.length > 1) return plain.handBack(request);
      throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
    },
  }));
  const worker = new Worker(unanswered, { concurrency: 1, prefetch: 1 }).register(
    Task,
    async ({ n }, ctx) => {
      started.push(n);
      if (n === 0) await ctx.extendLease("1m");
      await ends[n]?.promise;
    },
  );
  await running(worker, async () => {
    await until(() => handedBack.length === 2);
    ends[0]?.resolve();
    await until(() => started.length === 2);
    const [late] = handedBack;
    if (late) expect(await store.handBack(late)).toEqual({ verdicts: ["lost"] });
    ends[1]?.resolve();
    await until(async () => (await queue.jobs({ ids, status: "completed" })).jobs.length === 2);
  });
  expect(started).toEqual([0, 1]);
  expect(await queue.job(ids[1] as string)).toMatchObject({ runCount: 1, failureCount: 0 });
});

describe("a worker that others may have taken for dead", () => {
  test("starts nothing that it had claimed ahead before it was suspended", async () => {
    const Task = defineTask({ kind: "ahead_suspended", payload });
    const ids = await queue.enqueueMany(Array.from({ length: 6 }, (_, n) => Task({ n })));
    const child = new WorkerProcess({
      url: database.url,
      kind: Task.kind,
      handlerMs: 200,
      worker: { concurrency: 1, prefetch: 20, workerTimeout: "1s" },
    });
    await child.said(`started ${ids[0]}`);
    void child.kill("SIGSTOP");
    const rescuer = new Worker(store, { workerTimeout: "1s" }).register(Task, () => undefined);
    await running(rescuer, () =>
      until(async () => (await queue.jobs({ ids, status: "completed" })).jobs.length === 6),
    );
    const before = child.lines.filter((line) => line.startsWith("started")).length;
    void child.kill("SIGCONT");
    // What is claimed from now on does start.
    const next = await queue.enqueue(Task({ n: 6 }));
    await child.said(`started ${next}`);
    const started = child.lines.filter((line) => line.startsWith("started"));
    expect(started.slice(before)).toEqual([`started ${next} 1`]);
    await until(async () => (await queue.job(next))?.status === "completed");
    expect(await child.kill("SIGTERM")).toBe(0);
  });

  test("hands back what waits as soon as a beat succeeds again, and claims it anew", async () => {
    const { Task, enqueue, claimed } = kindOf("ahead_silent");
    const ids = await enqueue(4);
    const end = deferred();
    let isSilent = false;
    let beatAt = performance.now();
    let silentMs = 0;
    let handedBack = 0;
    const silent = wrapStore(store, (plain) => ({
      beat: async (request) => {
        const at = performance.now();
        if (isSilent) {
          silentMs = at - beatAt;
          throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
        }
        const result = await plain.beat(request);
        beatAt = at;
        return result;
      },
      handBack: async (request) => {
        handedBack += request.claims.length;
        return plain.handBack(request);
      },
    }));
    const options = { concurrency: 1, prefetch: 3, workerTimeout: 300 };
    const worker = new Worker(silent, options).register(Task, () => end.promise);
    await running(worker, async () => {
      await until(async () => (await claimed()).length === 4);
      isSilent = true;
      // A beat has failed after the worker's timeout: others may have taken it for dead.
      await until(() => silentMs > 300);
      expect(handedBack).toBe(0);
      isSilent = false;
      await until(() => handedBack === 3);
      await until(async () => (await claimed()).length === 4);
      end.resolve();
      await until(async () => (await queue.jobs({ ids, status: "completed" })).jobs.length === 4);
    });
    const jobs = await Promise.all(ids.map((id) => queue.job(id)));
    expect(jobs.map((job) => job?.runCount)).toEqual([1, 1, 1, 1]);
  });

  test("does not start what a claim brings that was under way meanwhile, since others may run it", async () => {
    const { Task, enqueue } = kindOf("ahead_late");
    const [id] = await enqueue(1);
    const mayArrive = deferred();
    const mayEnd = deferred();
    let isSilent = false;
    let beats = 0;
    let handedBack = 0;
    const late = wrapStore(store, (plain) => ({
      claim: async (request) => {
        const result = await plain.claim(request);
        if (result.jobs.length > 0) {
          isSilent = true;
          await mayArrive.promise;
        }
        return result;
      },
      beat: async (request) => {
        if (isSilent) throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
        const result = await plain.beat(request);
        beats += 1;
        return result;
      },
      handBack: async (request) => {
        handedBack += request.claims.length;
        return plain.handBack(request);
      },
    }));
    const started: string[] = [];
    const start = (by: string) => () => {
      started.push(by);
      return mayEnd.promise;
    };
    const options = { workerTimeout: 300 };
    const worker = new Worker(late, options).register(Task, start("first"));
    await running(worker, async () => {
      await until(() => isSilent);
      const rescuer = new Worker(store, options).register(Task, start("rescuer"));
      await running(rescuer, async () => {
        await until(() => started.length === 1);
        const before = beats;
        isSilent = false;
        await until(() => beats > before);
        mayArrive.resolve();
        await until(() => handedBack + started.length > 1);
        expect(started).toEqual(["rescuer"]);
        mayEnd.resolve();
        await until(async () => (await queue.job(id as string))?.status === "completed");
      });
    });
    expect(await queue.job(id as string)).toMatchObject({ runCount: 2, failureCount: 1 });
  });
});

describe("prefetch auto", () => {
  test("claims nothing ahead while handlers are long", async () => {
    const { Task, enqueue, claimed } = kindOf("auto_long");
    const ids = await enqueue(30);
    let most = 0;
    const worker = new Worker(store, { concurrency: 4 }).register(
      Task,
      () => new Promise((resolve) => setTimeout(resolve, 40)),
    );
    await running(worker, () =>
      until(async () => {
        most = Math.max(most, (await claimed()).length);
        return (await queue.jobs({ ids, status: "completed" })).jobs.length === 30;
      }),
    );
    // What has ended and is being settled still counts as claimed.
    expect(most).toBeLessThanOrEqual(8);
  });

  test("claims more at once as short handlers ask for it", async () => {
    const { Task, enqueue } = kindOf("auto_short");
    await enqueue(1_000);
    const { brought, watched } = watchClaims();
    const worker = new Worker(watched, { concurrency: 2 }).register(Task, () => undefined);
    expect((await worker.runOnce()).completed).toBe(1_000);
    expect(brought[0]).toBe(2);
    expect(Math.max(...brought)).toBeGreaterThan(20);
  });

  test("hands back what has waited for a second behind a job that turned out long", async () => {
    const { Task, enqueue, claimed, allDone } = kindOf("auto_stalled");
    const ids = await enqueue(2_000);
    const end = deferred();
    let ended = 0;
    const worker = new Worker(store, { concurrency: 2 }).register(Task, () => {
      ended += 1;
      return ended > 500 ? end.promise : undefined;
    });
    await running(worker, async () => {
      await until(() => ended === 502);
      await until(async () => (await claimed()).length === 2, { withinMs: 4_000 });
      end.resolve();
      await until(allDone);
    });
    const jobs = await Promise.all([ids[600], ids[1_999]].map((id) => queue.job(id as string)));
    expect(jobs.map((job) => job?.runCount)).toEqual([1, 1]);
  });
});
