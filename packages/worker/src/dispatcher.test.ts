import { type ClaimedJob, defineTask, Outcome, silentLogger, VenturiError } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { MemoryStore } from "@venturi/testing";
import fc from "fast-check";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { ClaimAhead } from "./claim-ahead.ts";
import { Dispatcher } from "./dispatcher.ts";
import { WorkerEvents } from "./events.ts";
import { HandlerRegistry } from "./handler-registry.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import type { Run } from "./run.ts";
import { Slots } from "./slots.ts";
import { ManualClock } from "./testing/manual-clock.ts";
import { type Deferred, deferred } from "./testing/signals.ts";
import { staleClaim } from "./testing/stale-claims.ts";
import { Worker } from "./worker.ts";

const Task = defineTask({ kind: "t", payload: v.object({ n: v.number() }) });

/** A schema that answers later, as one that asks a database does. */
const later = v.pipeAsync(
  v.object({ n: v.number() }),
  v.checkAsync(async () => true),
);
const Later = defineTask({ kind: "later", payload: later });

describe("a handler that ends with its call", () => {
  test("and stops its worker is the last that is called; the others are handed back", async () => {
    const store = new MemoryStore();
    const queue = new Queue(store);
    const ids = await queue.enqueueMany(Array.from({ length: 20 }, (_, n) => Task({ n })));
    const called: number[] = [];
    const worker = new Worker(store, { concurrency: 20 }).register(Task, ({ n }) => {
      called.push(n);
      if (n === 3) void worker.stop();
    });
    await worker.run();
    expect(called).toEqual([0, 1, 2, 3]);
    const jobs = await Promise.all(ids.map((id) => queue.job(id)));
    expect(jobs.filter((job) => job?.status === "completed")).toHaveLength(4);
    expect(jobs.filter((job) => job?.status === "pending")).toHaveLength(16);
  });

  test("and stops its worker may give up at once, since it has been told to", async () => {
    const store = new MemoryStore();
    const queue = new Queue(store);
    const id = await queue.enqueue(Task({ n: 0 }));
    const worker = new Worker(store).register(Task, (_, ctx) => {
      void worker.stop();
      ctx.signal.throwIfAborted();
    });
    await worker.run();
    expect(await queue.job(id)).toMatchObject({ status: "pending", failureCount: 0 });
    expect(await queue.journal(id)).toMatchObject([{ outcome: "released" }]);
  });

  test("and stops its worker keeps those from being called whose payloads are being decoded", async () => {
    const store = new MemoryStore();
    const queue = new Queue(store);
    await queue.enqueueMany(Array.from({ length: 5 }, (_, n) => Later({ n })));
    const called: number[] = [];
    const worker = new Worker(store).register(Later, ({ n }) => {
      called.push(n);
      void worker.stop();
    });
    await worker.run();
    expect(called).toEqual([0]);
    expect((await queue.stats()).pendingByKind).toMatchObject({ later: 4 });
  });
});

/** What a handler does, and whether what it is given is decoded later. */
const deeds = [
  "returns",
  "throws",
  "pauses",
  "takes long",
  "goes on",
  "gives up",
  "stops",
] as const;
interface Payload {
  readonly deed: (typeof deeds)[number];
  readonly claim: string;
}

/** A dispatcher over three kinds, one of which decodes later and one of which has a cap, and what came of its claims. */
function dispatching(concurrency: number, isAuto: boolean) {
  const clock = new ManualClock();
  const slots = new Slots(concurrency);
  const registry = new HandlerRegistry({ leaseMs: 60_000, backstop: 20 }, slots);
  /** Handlers that go on, by their claims. */
  const goingOn = new Map<string, Deferred<void>>();
  const handling = new Set<string>();
  const came = new Map<string, string[]>();
  const faults: string[] = [];
  /** When the last beat was sent that succeeded; null: just now, always. */
  const beats: { lastAt: number | null } = { lastAt: null };
  /** Until when claims that did not start may be undone. */
  const undoUntil: number[] = [];
  /** Claims whose leases ended while their handlers went on. */
  const overdue: string[] = [];
  let isStopped = false;
  const note = ({ id, runCount }: ClaimedJob, what: string) => {
    const claim = `${id}/${runCount}`;
    came.set(claim, [...(came.get(claim) ?? []), what]);
  };
  const handler = ({ deed, claim }: Payload, ctx: { signal: AbortSignal }): unknown => {
    const [id = ""] = claim.split("/");
    // What is thrown in here would be the handler's.
    if (handling.has(id)) faults.push(`${id} runs beside itself`);
    if (dispatcher.running > concurrency) faults.push("too many run");
    if (dispatcher.running !== slots.running) faults.push("the counts differ");
    if (!dispatcher.runs().some(({ job }) => `${job.id}/${job.runCount}` === claim))
      faults.push(`${claim} runs unknown`);
    if (isStopped) faults.push(`${claim} is called after the stop`);
    if (deed === "stops") {
      isStopped = true;
      dispatcher.stop(new VenturiError("shutdown", "told by a handler"));
      // The counts are asked for while this handler is being called.
      if (dispatcher.running !== slots.running) faults.push("the counts differ after a stop");
      if (!ctx.signal.aborted) faults.push("the signal of the one that stops is not aborted");
      return undefined;
    }
    if (deed === "throws") throw new Error("on purpose");
    if (deed === "pauses") return Outcome.pauseFor(0);
    if (deed === "takes long") clock.standStill(3);
    if (deed !== "goes on" && deed !== "gives up") return undefined;
    const end = deferred<void>();
    goingOn.set(claim, end);
    handling.add(id);
    if (deed === "gives up") ctx.signal.addEventListener("abort", () => end.resolve(undefined));
    return end.promise.finally(() => {
      goingOn.delete(claim);
      handling.delete(id);
    });
  };
  const payload = v.object({ deed: v.picklist(deeds), claim: v.string() });
  const checked = v.pipeAsync(
    payload,
    v.checkAsync(async () => true),
  );
  registry.add(defineTask({ kind: "plain", payload }), handler as never);
  registry.add(defineTask({ kind: "capped", payload }), handler as never, { cap: 2 });
  registry.add(defineTask({ kind: "decoded later", payload: checked }), handler as never);
  const leases = new LeaseKeeper<Run>({
    clock,
    onEnding: (run) => dispatcher.leaseEnding(run),
    onOverdue: ({ job }) => {
      slots.bar(job.id);
      overdue.push(`${job.id}/${job.runCount}`);
    },
  });
  const ahead = new ClaimAhead(isAuto ? "auto" : 8, concurrency);
  const dispatcher: Dispatcher = new Dispatcher({
    registry,
    slots,
    leases,
    ahead,
    events: new WorkerEvents({ worker: "w", clock, logger: silentLogger }),
    logger: silentLogger,
    services: {
      store: { readJournal: async () => ({ entries: [] }) },
      logger: silentLogger,
      clock,
      extendLease: () => Promise.reject(new Error("not here")),
      complete: () => Promise.reject(new Error("not here")),
    },
    lastBeatAt: () => beats.lastAt ?? clock.now(),
    workerTimeoutMs: 60_000,
    panicPolicy: "retry",
    state: undefined,
    onEnd: ({ job }, { type }) => note(job, type),
    onUnstarted: (job, leaseEndsAt) => {
      note(job, "unstarted");
      undoUntil.push(leaseEndsAt);
    },
  });
  return {
    clock,
    slots,
    registry,
    ahead,
    dispatcher,
    goingOn,
    came,
    faults,
    overdue,
    undoUntil,
    beats,
  };
}

const kinds = ["plain", "capped", "decoded later"] as const;
const anyStep = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      step: fc.constant("claim" as const),
      startsAfterNext: fc.boolean(),
      jobs: fc.array(
        fc.record({
          /** Few ids, so that jobs come again whose runs still go on. */
          id: fc.nat(7),
          kind: fc.constantFrom(...kinds),
          deed: fc.oneof(
            { weight: 60, arbitrary: fc.constantFrom(...deeds.filter((deed) => deed !== "stops")) },
            { weight: 1, arbitrary: fc.constant("stops" as const) },
          ),
          isBroken: fc.constantFrom(false, false, false, true),
          leaseMs: fc.constantFrom(100, 60_000),
        }),
        { maxLength: 6 },
      ),
    }),
  },
  { weight: 3, arbitrary: fc.record({ step: fc.constant("end" as const), which: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.record({ step: fc.constant("lose" as const), which: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.record({ step: fc.constant("pass" as const), ms: fc.nat(2_000) }) },
  { weight: 1, arbitrary: fc.record({ step: fc.constant("give up what waits" as const) }) },
  { weight: 3, arbitrary: fc.record({ step: fc.constant("settle" as const) }) },
);

/** Jobs as a claim brings them, whose handlers return at once unless told otherwise. */
const jobsOf = (
  ids: readonly string[],
  {
    kind = "plain",
    deed = "returns",
    leaseMs = 60_000,
  }: Partial<Pick<Payload, "deed"> & Pick<ClaimedJob, "kind" | "leaseMs">> = {},
) =>
  ids.map(
    (id): ClaimedJob => ({
      ...{ id, kind, priority: "normal", runCount: 1, failureCount: 0, latencyMs: 0 },
      ...{ carry: null, headers: null, leaseMs, leaseExpiresAt: new Date(leaseMs) },
      payload: JSON.stringify({ deed, claim: `${id}/1` }),
    }),
  );

test("handlers of a batch are called at once", () => {
  const { clock, dispatcher, came } = dispatching(4, true);
  const jobs = jobsOf(["1", "2"]);
  const batch = { jobs, sentAt: clock.now(), receivedAt: clock.now() };
  dispatcher.start({ ...batch, startsAfterNext: false });
  expect([...came]).toEqual(jobs.map(({ id }) => [`${id}/1`, ["completed"]]));
});

test("handlers that end with their call are called for two milliseconds, then whatever is ready has its turn", async () => {
  const { clock, dispatcher, came } = dispatching(4, true);
  const jobs = jobsOf(["1", "2", "3"], { deed: "takes long" });
  const batch = { jobs, sentAt: clock.now(), receivedAt: clock.now() };
  dispatcher.start({ ...batch, startsAfterNext: false });
  expect(came.size).toBe(1);
  let cameBefore = 0;
  clock.soon(() => {
    cameBefore = came.size;
  });
  await clock.settle();
  expect(cameBefore).toBeLessThan(3);
  expect(came.size).toBe(3);
});

test("says of each job, and of each claim, whether it waits for a slot", () => {
  const { clock, dispatcher } = dispatching(1, false);
  const jobs = jobsOf(["1", "2", "3"], { deed: "goes on" });
  const batch = { jobs, sentAt: clock.now(), receivedAt: clock.now() };
  dispatcher.start({ ...batch, startsAfterNext: false });
  expect(["1", "2", "3", "4"].map((id) => dispatcher.isWaitingFor(id))).toEqual([
    false,
    true,
    true,
    false,
  ]);
  const claimed = (jobId: string, runCount: number) => staleClaim(jobId, 1, { jobId, runCount });
  expect(dispatcher.isWaiting(claimed("2", 1))).toBe(true);
  expect(dispatcher.isWaiting(claimed("2", 2))).toBe(false);
  expect(dispatcher.isWaiting(claimed("1", 1))).toBe(false);
});

test("a slot that has become free is taken at once by what waits", async () => {
  const { clock, dispatcher, goingOn } = dispatching(1, false);
  const jobs = jobsOf(["1", "2"], { deed: "goes on" });
  const batch = { jobs, sentAt: clock.now(), receivedAt: clock.now() };
  dispatcher.start({ ...batch, startsAfterNext: false });
  await clock.settle();
  expect([...goingOn.keys()]).toEqual(["1/1"]);
  goingOn.get("1/1")?.resolve(undefined);
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  expect([...goingOn.keys()]).toEqual(["2/1"]);
});

test("a stop leaves no timer for what waited", async () => {
  const { clock, dispatcher } = dispatching(1, false);
  const jobs = jobsOf(["1", "2"], { deed: "goes on" });
  const batch = { jobs, sentAt: clock.now(), receivedAt: clock.now() };
  dispatcher.start({ ...batch, startsAfterNext: false });
  await clock.settle();
  dispatcher.stop(new VenturiError("shutdown", "over"));
  // That of the lease of the one that runs.
  expect(clock.pending).toBe(1);
});

test("what a claim brings that was sent before others took this worker for dead is undone", async () => {
  const { clock, dispatcher, came } = dispatching(4, true);
  const sentAt = clock.now();
  clock.standStill(10);
  dispatcher.takenForDead();
  const before = { jobs: jobsOf(["1"]), sentAt, receivedAt: clock.now() };
  dispatcher.start({ ...before, startsAfterNext: false });
  expect([...came]).toEqual([["1/1", ["unstarted"]]]);
  clock.standStill(10);
  const since = { jobs: jobsOf(["2"]), sentAt: clock.now(), receivedAt: clock.now() };
  dispatcher.start({ ...since, startsAfterNext: false });
  expect(came.get("2/1")).toEqual(["completed"]);
});

test("a claim that waits for a slot is undone after a third of its lease", async () => {
  const { clock, dispatcher, came } = dispatching(1, false);
  const jobs = jobsOf(["1", "2"], { deed: "goes on" });
  const batch = { jobs, sentAt: clock.now(), receivedAt: clock.now() };
  dispatcher.start({ ...batch, startsAfterNext: false });
  await clock.advance(19_990);
  expect([...came]).toEqual([]);
  await clock.advance(20);
  expect([...came]).toEqual([["2/1", ["unstarted"]]]);
});

test("what handlers took is observed, so that more is claimed ahead where they are short", () => {
  const { clock, ahead, dispatcher } = dispatching(4, true);
  const jobs = jobsOf(Array.from({ length: 8 }, (_, n) => `${n}`));
  const batch = { jobs, sentAt: clock.now(), receivedAt: clock.now() };
  dispatcher.start({ ...batch, startsAfterNext: false });
  expect(ahead.target).toBeGreaterThan(0);
});

test("a run that has lost its claim is told so, and its job is not claimed while its handler goes on", async () => {
  const { clock, slots, dispatcher, goingOn } = dispatching(1, true);
  const jobs = jobsOf(["1"], { deed: "goes on" });
  const batch = { jobs, sentAt: clock.now(), receivedAt: clock.now() };
  dispatcher.start({ ...batch, startsAfterNext: false });
  const [run] = dispatcher.runs() as [Run];
  dispatcher.claimLost(run);
  expect(run.hasLostClaim).toBe(true);
  expect(run.abortReason).toMatchObject({ code: "claim-lost" });
  expect(slots.barred()).toEqual(["1"]);
  goingOn.get("1/1")?.resolve(undefined);
  await clock.settle();
  expect(slots.barred()).toEqual([]);
});

test("a run that has ended is not told of its claim any more", async () => {
  const { clock, dispatcher, goingOn } = dispatching(1, true);
  const jobs = jobsOf(["1"], { deed: "goes on" });
  const batch = { jobs, sentAt: clock.now(), receivedAt: clock.now() };
  dispatcher.start({ ...batch, startsAfterNext: false });
  const [run] = dispatcher.runs() as [Run];
  goingOn.get("1/1")?.resolve(undefined);
  await clock.settle();
  dispatcher.claimLost(run);
  expect(run.abortReason).toBeNull();
});

test("a second claim of a job whose handler goes on is undone, and no third is asked for meanwhile", () => {
  const { clock, slots, dispatcher, came, undoUntil } = dispatching(2, true);
  const [job] = jobsOf(["1"], { deed: "goes on" }) as [ClaimedJob];
  const jobs = [job, { ...job, runCount: 2 }];
  const batch = { jobs, sentAt: clock.now(), receivedAt: clock.now() };
  dispatcher.start({ ...batch, startsAfterNext: false });
  expect([...came]).toEqual([["1/2", ["unstarted"]]]);
  expect(slots.barred()).toEqual(["1"]);
  dispatcher.start({ ...batch, jobs: [{ ...job, runCount: 3 }], startsAfterNext: false });
  expect(came.get("1/3")).toEqual(["unstarted"]);
  // It is tried until their leases end.
  expect(undoUntil).toEqual([clock.now() + 60_000, clock.now() + 60_000]);
});

test("a claim whose lease has ended while it waited for a slot is undone", async () => {
  const { clock, dispatcher, goingOn, came } = dispatching(1, false);
  const jobs = [...jobsOf(["1"], { deed: "goes on" }), ...jobsOf(["2"], { leaseMs: 100 })];
  const batch = { jobs, sentAt: clock.now(), receivedAt: clock.now() };
  dispatcher.start({ ...batch, startsAfterNext: false });
  clock.standStill(100);
  goingOn.get("1/1")?.resolve(undefined);
  await clock.settle();
  expect(came.get("2/1")).toEqual(["unstarted"]);
});

test("what was claimed before the process stood still for its worker timeout is undone, what is claimed since is not", async () => {
  const { clock, dispatcher, goingOn, came, beats } = dispatching(1, false);
  beats.lastAt = clock.now();
  const start = (jobs: readonly ClaimedJob[]) => {
    const batch = { jobs, sentAt: clock.now(), receivedAt: clock.now() };
    dispatcher.start({ ...batch, startsAfterNext: false });
  };
  const leaseMs = 900_000;
  start([...jobsOf(["1"], { deed: "goes on", leaseMs }), ...jobsOf(["2"], { leaseMs })]);
  clock.standStill(60_001);
  start(jobsOf(["3"], { leaseMs }));
  goingOn.get("1/1")?.resolve(undefined);
  await clock.settle();
  expect(came.get("2/1")).toEqual(["unstarted"]);
  expect(came.get("3/1")).toEqual(["completed"]);
});

test("the lease of a handler that goes on is watched until that has ended", async () => {
  const { clock, dispatcher, goingOn, overdue } = dispatching(2, true);
  const jobs = jobsOf(["1", "2"], { deed: "goes on" });
  const batch = { jobs, sentAt: clock.now(), receivedAt: clock.now() };
  dispatcher.start({ ...batch, startsAfterNext: false });
  goingOn.get("1/1")?.resolve(undefined);
  const [, two] = dispatcher.runs();
  await clock.advance(59_000);
  expect(two?.abortReason).toMatchObject({ code: "lease-ended" });
  expect(overdue).toEqual([]);
  await clock.advance(1_000);
  expect(overdue).toEqual(["2/1"]);
});

test("a job that is still being decoded when the worker gives up is handed back: its handler never ran", async () => {
  const { clock, dispatcher, came } = dispatching(4, true);
  const jobs = jobsOf(["1"], { kind: "decoded later" });
  const batch = { jobs, sentAt: clock.now(), receivedAt: clock.now() };
  dispatcher.start({ ...batch, startsAfterNext: false });
  dispatcher.stop(new VenturiError("shutdown", "over"));
  dispatcher.release();
  expect([...came]).toEqual([["1/1", ["unstarted"]]]);
  await clock.settle();
  expect([...came]).toEqual([["1/1", ["unstarted"]]]);
});

test("a handler that goes on when the worker gives up is released, and what it comes to is dropped", async () => {
  const { clock, dispatcher, goingOn, came } = dispatching(4, true);
  const jobs = jobsOf(["1"], { deed: "goes on" });
  const batch = { jobs, sentAt: clock.now(), receivedAt: clock.now() };
  dispatcher.start({ ...batch, startsAfterNext: false });
  dispatcher.stop(new VenturiError("shutdown", "over"));
  dispatcher.release();
  dispatcher.release();
  expect([...came]).toEqual([["1/1", ["released"]]]);
  goingOn.get("1/1")?.resolve(undefined);
  await clock.settle();
  expect([...came]).toEqual([["1/1", ["released"]]]);
});

test("handlers of a batch that is to wait for the next claim are called after whatever is ready now", async () => {
  const { clock, dispatcher, came } = dispatching(4, true);
  const jobs = jobsOf(["1", "2"]);
  const batch = { jobs, sentAt: clock.now(), receivedAt: clock.now() };
  dispatcher.start({ ...batch, startsAfterNext: true });
  expect(came.size).toBe(0);
  expect(dispatcher.runs()).toHaveLength(2);
  await clock.settle();
  expect([...came]).toEqual(jobs.map(({ id }) => [`${id}/1`, ["completed"]]));
});

test("whatever handlers do, each claim comes to one end, no job runs beside itself, and the counts are right", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.boolean(),
      fc.array(anyStep, { maxLength: 25 }),
      fc.boolean(),
      async (concurrency, isAuto, steps, isReleased) => {
        const all = dispatching(concurrency, isAuto);
        const { clock, slots, registry, dispatcher, goingOn, came, faults } = all;
        const claims: string[] = [];
        const check = () => {
          const runs = dispatcher.runs();
          expect(slots.running).toBe(dispatcher.running);
          expect(slots.running).toBeLessThanOrEqual(concurrency);
          expect(slots.ahead).toBe(runs.length - slots.running);
          for (const kind of kinds) {
            const taken = runs.filter(({ job }) => job.kind === kind).length;
            expect(registry.get(kind)?.slots.taken).toBe(taken);
          }
          const started = runs.slice(0, slots.running);
          for (const id of slots.barred())
            expect(started.some(({ job }) => job.id === id)).toBe(true);
          for (const { job, startedAt } of started) {
            expect(slots.isRunning(job.id)).toBe(true);
            expect(startedAt).toBeGreaterThan(0);
          }
          // What has come to an end is no longer there, and the other way round.
          const here = new Set(runs.map(({ job }) => `${job.id}/${job.runCount}`));
          for (const claim of claims) expect(came.has(claim)).toBe(!here.has(claim));
        };
        for (const step of steps) {
          const runs = dispatcher.runs();
          if (step.step === "claim") {
            const jobs = step.jobs.map(({ id, kind, deed, isBroken, leaseMs }): ClaimedJob => {
              const claim = `${id}/${claims.length}`;
              const runCount = claims.push(claim) - 1;
              const payload = isBroken ? "{" : JSON.stringify({ deed, claim });
              const none = { carry: null, headers: null, failureCount: 0, latencyMs: 0 };
              const leaseExpiresAt = new Date(clock.now() + leaseMs);
              const told = { id: `${id}`, kind, runCount, payload, leaseMs, leaseExpiresAt };
              return { ...none, ...told, priority: "normal" };
            });
            const { startsAfterNext } = step;
            dispatcher.start({
              jobs,
              sentAt: clock.now(),
              receivedAt: clock.now(),
              startsAfterNext,
            });
          } else if (step.step === "end") {
            const ends = [...goingOn.values()];
            ends[step.which % Math.max(1, ends.length)]?.resolve(undefined);
          } else if (step.step === "lose") {
            const run = runs[step.which % Math.max(1, runs.length)];
            const isWaiting = runs.indexOf(run as Run) >= slots.running;
            if (run !== undefined) dispatcher.claimLost(run);
            if (isWaiting) expect(dispatcher.runs().includes(run as Run)).toBe(false);
          } else if (step.step === "pass") await clock.advance(step.ms);
          else if (step.step === "settle") await clock.settle();
          else dispatcher.takenForDead();
          check();
        }
        await clock.settle();
        check();
        dispatcher.stop(new VenturiError("shutdown", "over"));
        check();
        let isIdle = false;
        void dispatcher.idle().then(() => {
          isIdle = true;
        });
        if (isReleased) dispatcher.release();
        await clock.settle();
        expect(isIdle).toBe(dispatcher.running === 0);
        for (const end of goingOn.values()) end.resolve(undefined);
        await clock.settle();
        expect(isIdle).toBe(true);
        expect(dispatcher.runs()).toEqual([]);
        expect([slots.running, slots.ahead, ...slots.barred()]).toEqual([0, 0]);
        for (const kind of kinds) expect(registry.get(kind)?.slots.taken).toBe(0);
        expect(faults).toEqual([]);
        for (const claim of claims) expect([claim, came.get(claim)?.length]).toEqual([claim, 1]);
      },
    ),
    { numRuns: 200 },
  );
});
