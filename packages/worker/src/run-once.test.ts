import { Backoff, decideRecovery, defineTask, type WorkerId } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { ManualClock, MemoryStore } from "@venturi/testing";
import * as v from "valibot";
import { beforeEach, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { wrapStore } from "./testing/wrap-store.ts";

const Task = defineTask({ kind: "t", payload: v.object({}) });
const Other = defineTask({ kind: "other", payload: v.object({}) });
const reset = () => Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });

const queueOf = (of: MemoryStore) => new Queue(of);

let clock: ManualClock;
let store: MemoryStore;
let queue: ReturnType<typeof queueOf>;

beforeEach(() => {
  clock = new ManualClock();
  store = new MemoryStore({ clock });
  queue = queueOf(store);
});

test("a worker whose runOnce could not hand a claim back runs the job another time", async () => {
  const id = await queue.enqueue(Task({}));
  const stop = new AbortController();
  let isBroken = true;
  const flaky = wrapStore(store, (plain) => ({
    claim: async (request) => {
      const result = await plain.claim(request);
      if (isBroken) stop.abort();
      return result;
    },
    handBack: async (request) => {
      if (isBroken) throw reset();
      return plain.handBack(request);
    },
  }));
  let runs = 0;
  const worker = new Worker(flaky, { shutdownTimeout: 0 }).register(Task, () => {
    runs += 1;
  });
  await worker.runOnce({ signal: stop.signal });
  isBroken = false;
  // Others recover the claim of whoever went silent.
  clock.advance("2h");
  await new Worker(store).register(Other, () => undefined).runOnce();
  clock.advance("2h");
  expect(await queue.job(id)).toMatchObject({ status: "pending" });
  expect(await worker.runOnce()).toMatchObject({ completed: 1 });
  expect(runs).toBe(1);
});

test("runOnce runs no job twice, also one that completed after others had taken its claim", async () => {
  const id = await queue.enqueue(Task({}));
  let session: WorkerId | undefined;
  const wrapped = wrapStore(store, (plain) => ({
    startWorker: async (request) => {
      const started = await plain.startWorker(request);
      session = started.worker;
      return started;
    },
  }));
  let runs = 0;
  const worker = new Worker(wrapped).register(Task, async () => {
    runs += 1;
    if (runs > 1 || session === undefined) return;
    // Suspended for so long that the lease has passed by the store's clock, and another worker recovers the job.
    clock.advance("2h");
    const holders = [{ worker: session, overdueOnly: false }];
    const { claims } = await store.findStale({ holders, orphans: false, limit: 10 });
    const now = new Backoff({ base: "1ms", cap: "1ms" });
    await store.recover({ recoveries: claims.map((claim) => decideRecovery(claim, now, 0)) });
    clock.advance("1h");
  });
  expect(await worker.runOnce()).toMatchObject({ completed: 0 });
  expect(runs).toBe(1);
  expect((await queue.journal(id)).map(({ outcome }) => outcome)).toEqual(["stale-recovered"]);
});
