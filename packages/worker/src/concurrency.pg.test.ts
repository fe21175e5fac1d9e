import { defineTask, type Priority, type WorkerId } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
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

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Counts handlers that run at once. */
class Gauge {
  now = 0;
  most = 0;

  async during(work: () => Promise<void>): Promise<void> {
    this.now += 1;
    this.most = Math.max(this.most, this.now);
    await work();
    this.now -= 1;
  }
}

describe("a kind at its cap", () => {
  test("does not keep other kinds from running, and its jobs stay pending meanwhile", async () => {
    const Capped = defineTask({ kind: "capped", payload, priority: "high" });
    const Free = defineTask({ kind: "free", payload, priority: "low" });
    await queue.enqueueMany(Array.from({ length: 20 }, (_, n) => Capped({ n })));
    const free = await queue.enqueueMany(Array.from({ length: 10 }, (_, n) => Free({ n })));
    const gauge = new Gauge();
    const go = deferred();
    const worker = new Worker(store, { concurrency: 8 })
      .register(Capped, () => gauge.during(() => go.promise), { cap: 2 })
      .register(Free, () => wait(5));
    await running(worker, async () => {
      await until(
        async () => (await queue.jobs({ ids: free, status: "completed" })).jobs.length === 10,
      );
      const { jobs } = await queue.jobs({ kind: "capped", status: "pending" });
      expect(jobs).toHaveLength(18);
      go.resolve();
      await until(
        async () => (await queue.jobs({ kind: "capped", status: "completed" })).jobs.length === 20,
      );
    });
    expect(gauge.most).toBe(2);
  });

  test("is claimed for again as soon as one of its handlers ends", async () => {
    const Capped = defineTask({ kind: "capped_again", payload });
    const ids = await queue.enqueueMany(Array.from({ length: 6 }, (_, n) => Capped({ n })));
    const worker = new Worker(store, { concurrency: 8, pollMax: "60s" }).register(
      Capped,
      () => wait(5),
      { cap: 1 },
    );
    await running(worker, () =>
      until(async () => (await queue.jobs({ ids, status: "completed" })).jobs.length === 6, {
        withinMs: 3_000,
      }),
    );
  });

  test("bounds a claim too: of many free slots it takes only what its cap leaves", async () => {
    const Capped = defineTask({ kind: "capped_batch", payload });
    await queue.enqueueMany(Array.from({ length: 30 }, (_, n) => Capped({ n })));
    const brought: number[] = [];
    const watched = wrapStore(store, (plain) => ({
      claim: async (request) => {
        const result = await plain.claim(request);
        brought.push(result.jobs.length);
        return result;
      },
    }));
    const worker = new Worker(watched, { concurrency: 16 }).register(Capped, () => undefined, {
      cap: 1,
    });
    expect((await worker.runOnce()).completed).toBe(30);
    expect(Math.max(...brought)).toBe(1);
  });
});

describe("while all slots are busy", () => {
  test("the worker asks for nothing, and claims within 50 ms of a slot becoming free", async () => {
    const Task = defineTask({ kind: "busy", payload });
    await queue.enqueueMany(Array.from({ length: 50 }, (_, n) => Task({ n })));
    const claims: number[] = [];
    const watched = wrapStore(store, (plain) => ({
      claim: (request) => {
        claims.push(performance.now());
        return plain.claim(request);
      },
    }));
    const rounds = 9;
    const gates = Array.from({ length: 2 + rounds }, () => deferred());
    let started = 0;
    const worker = new Worker(watched, { concurrency: 2, pollMax: 50 }).register(Task, async () => {
      const gate = gates[started];
      started += 1;
      await gate?.promise;
    });
    await running(worker, async () => {
      await until(() => started === 2);
      const before = claims.length;
      await queue.enqueue(Task({ n: 50 }));
      await wait(500);
      expect(claims.length).toBe(before);
      // One of them may be late by whatever else the machine is at, most are not.
      const took: number[] = [];
      for (let round = 0; round < rounds; round += 1) {
        const seen = claims.length;
        const freedAt = performance.now();
        gates[round]?.resolve();
        await until(() => started === 3 + round);
        took.push((claims[seen] as number) - freedAt);
      }
      expect(took.sort((a, b) => a - b)[(rounds - 1) / 2]).toBeLessThan(50);
      for (const gate of gates) gate.resolve();
      await until(
        async () => (await queue.jobs({ kind: Task.kind, status: "completed" })).jobs.length === 51,
      );
    });
  });
});

test("while all slots are busy nothing is sent but heartbeats and at most one stale scan a second", async () => {
  const workerTimeout = 300;
  const Task = defineTask({ kind: "busy_quiet", payload });
  await queue.enqueueMany(Array.from({ length: 3 }, (_, n) => Task({ n })));
  const asked: string[] = [];
  const asking =
    <Request, Result>(verb: string, call: (request: Request) => Promise<Result>) =>
    (request: Request) => {
      asked.push(verb);
      return call(request);
    };
  // On a busy machine the worker may stand still for so long that others take it for dead. When it beats again, it looks
  // which claims of its own are left, once: that is no scan for stale ones.
  let own: WorkerId;
  let beatAt = performance.now();
  let silences = 0;
  const watched = wrapStore(store, (plain) => ({
    startWorker: async (request) => {
      asked.push("startWorker");
      const registered = await plain.startWorker(request);
      own = registered.worker;
      return registered;
    },
    stopWorker: asking("stopWorker", plain.stopWorker),
    claim: asking("claim", plain.claim),
    settle: asking("settle", plain.settle),
    handBack: asking("handBack", plain.handBack),
    extendLease: asking("extendLease", plain.extendLease),
    beat: async (request) => {
      asked.push("beat");
      const sentAt = performance.now();
      const answer = await plain.beat(request);
      if (performance.now() - beatAt > workerTimeout) silences += 1;
      beatAt = sentAt;
      return answer;
    },
    findStale: (request) => {
      const isOfOwn = request.holders.every(({ worker }) => worker === own) && !request.orphans;
      asked.push(isOfOwn ? "own claims" : "stale scan");
      return plain.findStale(request);
    },
    recover: asking("recover", plain.recover),
    readJournal: asking("readJournal", plain.readJournal),
  }));
  // Someone has died, so that there is something to scan for all the time.
  await store.startWorker({
    name: "dead",
    kinds: [],
    pollMaxMs: 1_000,
    workerTimeoutMs: 1,
    shortestLeaseMs: 1,
  });
  const finish = deferred();
  let started = 0;
  const worker = new Worker(watched, { concurrency: 2, pollMax: 20, workerTimeout }).register(
    Task,
    async () => {
      started += 1;
      await finish.promise;
    },
  );
  await running(worker, async () => {
    await until(() => started === 2);
    asked.length = 0;
    silences = 0;
    const from = performance.now();
    await wait(1_500);
    expect(new Set(asked).has("beat")).toBe(true);
    const known = ["beat", "stale scan", "own claims"];
    expect(asked.filter((verb) => !known.includes(verb))).toEqual([]);
    const seconds = (performance.now() - from) / 1_000;
    const count = (wanted: string) => asked.filter((verb) => verb === wanted).length;
    expect(count("stale scan")).toBeLessThanOrEqual(seconds + 1);
    expect(count("own claims")).toBeLessThanOrEqual(silences);
    finish.resolve();
    await until(() => started === 3);
  });
});

describe("order", () => {
  test("within a priority is that of arrival", async () => {
    const Task = defineTask({ kind: "arrival", payload });
    for (let n = 0; n < 100; n += 1) await queue.enqueue(Task({ n }));
    const order: number[] = [];
    const worker = new Worker(store, { concurrency: 1 }).register(Task, ({ n }) => {
      order.push(n);
    });
    await worker.runOnce();
    expect(order).toEqual(Array.from({ length: 100 }, (_, n) => n));
  });

  const prioritised = (kind: string) =>
    defineTask({
      kind,
      payload: v.object({ priority: v.picklist(["high", "normal", "low"]) }),
      priority: ({ priority }) => priority,
    });

  test("with the default ratio a flood of high jobs lets a normal one in within four claims, a low one within sixteen", async () => {
    const Task = prioritised("flood");
    const job = (priority: Priority) => Task({ priority });
    await queue.enqueueMany([
      ...Array.from({ length: 60 }, () => job("high")),
      job("normal"),
      job("low"),
    ]);
    const order: Priority[] = [];
    const worker = new Worker(store, { concurrency: 1 }).register(Task, ({ priority }) => {
      order.push(priority);
    });
    await worker.runOnce();
    expect(order.indexOf("normal")).toBeLessThan(4);
    expect(order.indexOf("low")).toBeLessThan(16);
  });

  test("without a ratio low jobs wait until nothing else is left", async () => {
    const Task = prioritised("strict_flood");
    const job = (priority: Priority) => Task({ priority });
    await queue.enqueueMany([
      job("low"),
      ...Array.from({ length: 40 }, () => job("high")),
      job("normal"),
    ]);
    const order: Priority[] = [];
    const worker = new Worker(store, { concurrency: 4, priorityRatio: null }).register(
      Task,
      ({ priority }) => {
        order.push(priority);
      },
    );
    await worker.runOnce();
    expect(order.slice(40)).toEqual(["normal", "low"]);
  });
});

test("a worker claims only the kinds it knows", async () => {
  const Known = defineTask({ kind: "known", payload });
  const Unknown = defineTask({ kind: "unknown", payload, priority: "high" });
  const [unknown] = await queue.enqueueMany([Unknown({ n: 1 }), Known({ n: 2 })]);
  const worker = new Worker(store).register(Known, () => undefined);
  expect(await worker.runOnce()).toMatchObject({ completed: 1 });
  expect(await queue.job(unknown as string)).toMatchObject({ status: "pending", runCount: 0 });
});
