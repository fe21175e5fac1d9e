import { defineTask, type JobId, type UndoneClaim } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterAll, afterEach, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { running } from "./testing/running.ts";
import { deferred, until } from "./testing/signals.ts";
import { wrapStore } from "./testing/wrap-store.ts";

const database = await testDatabase();
const store = await PostgresStore.connect({ connectionString: database.url });
const queue = new Queue(store);
const payload = v.object({});

expectNoWarnings();
afterAll(() => store.close());
afterEach(() => expectInvariants(database.pool));

const reset = () => Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
const statusOf = async (id: JobId) => (await queue.job(id))?.status;
const outcomes = async (id: JobId) => (await queue.journal(id)).map(({ outcome }) => outcome);
const isOf = (id: JobId) => (claims: readonly UndoneClaim[]) =>
  claims.some(({ jobId }) => jobId === id);

test("a job that was claimed anew while its hand-back was under way runs on, whatever answers are late or lost", async () => {
  const First = defineTask({ kind: "first", payload });
  const Job = defineTask({ kind: "handed back", payload, lease: "6s" });
  const firstMayEnd = deferred();
  const jobMayEnd = deferred();
  const claimMayGo = deferred();
  const handBackMayBeAnswered = deferred();
  const claims: JobId[][] = [];
  const handBacks: (readonly UndoneClaim[])[] = [];
  let delaysClaim = false;
  let losesClaim = false;
  const wrapped = wrapStore(store, (plain) => ({
    claim: async (request) => {
      if (delaysClaim) await claimMayGo.promise;
      const result = await plain.claim(request);
      claims.push(result.jobs.map(({ id }) => id));
      if (losesClaim && result.jobs.length > 0) {
        losesClaim = false;
        throw reset();
      }
      return result;
    },
    handBack: async (request) => {
      handBacks.push(request.claims);
      const result = await plain.handBack(request);
      if (handBacks.length > 1) return result;
      delaysClaim = false;
      claimMayGo.resolve();
      await handBackMayBeAnswered.promise;
      return result;
    },
  }));
  let runs = 0;
  const worker = new Worker(wrapped, { concurrency: 1, prefetch: 2 })
    .register(First, () => firstMayEnd.promise)
    .register(Job, async (_, context) => {
      runs += 1;
      await context.extendLease("10m");
      await jobMayEnd.promise;
    });
  const first = await queue.enqueue(First({}));
  await running(worker, async () => {
    await until(async () => (await statusOf(first)) === "claimed");
    const id = await queue.enqueue(Job({}));
    await until(async () => (await statusOf(id)) === "claimed");
    // A claim that sets out before the job is handed back, after a third of its lease, and arrives after that.
    await new Promise((resolve) => setTimeout(resolve, 1_300));
    delaysClaim = true;
    const next = await queue.enqueue(First({}), { priority: "low" });
    await until(() => claims.flat().filter((claimed) => claimed === id).length === 2);
    firstMayEnd.resolve();
    await until(() => runs === 1);
    await until(async () => {
      const leaseExpiresAt = (await queue.job(id))?.leaseExpiresAt;
      return (leaseExpiresAt?.getTime() ?? 0) > Date.now() + 300_000;
    });
    handBackMayBeAnswered.resolve();
    await until(() => claims.flat().includes(next));
    // An answer that is lost has the worker look for claims that it knows nothing of.
    losesClaim = true;
    const late = await queue.enqueue(First({}));
    await until(() => handBacks.some(isOf(late)));
    expect(await queue.job(id)).toMatchObject({ status: "claimed", runCount: 1 });
    expect(handBacks.filter(isOf(id))).toHaveLength(1);
    jobMayEnd.resolve();
    await until(async () => (await statusOf(id)) === "completed");
    expect(await outcomes(id)).toEqual(["completed"]);
    expect(runs).toBe(1);
    await until(async () => (await statusOf(late)) === "completed");
  });
});

test("a job whose lease was extended by a statement that nobody answered is not handed back while it runs", async () => {
  const Other = defineTask({ kind: "other", payload });
  const Job = defineTask({ kind: "extended", payload, lease: "1s" });
  const jobMayEnd = deferred();
  const handBacks: (readonly UndoneClaim[])[] = [];
  let recoveries = 0;
  let losesClaim = false;
  const wrapped = wrapStore(store, (plain) => ({
    claim: async (request) => {
      const result = await plain.claim(request);
      if (losesClaim && result.jobs.length > 0) {
        losesClaim = false;
        throw reset();
      }
      return result;
    },
    extendLease: async (request) => {
      await plain.extendLease(request);
      throw reset();
    },
    recover: async (request) => {
      recoveries += 1;
      return plain.recover(request);
    },
    handBack: async (request) => {
      handBacks.push(request.claims);
      return plain.handBack(request);
    },
  }));
  let runs = 0;
  const worker = new Worker(wrapped, { concurrency: 2 })
    .register(Other, () => undefined)
    .register(Job, async (_, context) => {
      runs += 1;
      await context.extendLease("10m").catch(() => undefined);
      await jobMayEnd.promise;
    });
  const id = await queue.enqueue(Job({}));
  await running(worker, async () => {
    await until(() => recoveries === 10, { withinMs: 30_000 });
    losesClaim = true;
    const other = await queue.enqueue(Other({}));
    await until(() => handBacks.some(isOf(other)));
    await until(async () => (await statusOf(other)) === "completed");
    expect(handBacks.filter(isOf(id))).toEqual([]);
    expect(await queue.job(id)).toMatchObject({ status: "claimed", runCount: 1 });
    jobMayEnd.resolve();
    await until(async () => (await statusOf(id)) === "completed");
    expect(await outcomes(id)).toEqual(["completed"]);
    expect(runs).toBe(1);
  });
});
