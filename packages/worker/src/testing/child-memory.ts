import { defineTask } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { MemoryStore } from "@venturi/testing";
import * as v from "valibot";
import { Worker } from "../index.ts";

/** What a worker's process holds on to, in bytes, beside what its store does. */
export interface MemoryReport {
  readonly idleTurns: number;
  readonly idleGrowth: number;
  readonly jobs: number;
  readonly busyGrowth: number;
}

// A process of its own, with --expose-gc: a worker that looks for jobs every millisecond and finds none, then one
// that runs many, whose handlers extend their leases. Claims ahead unless told "claim-as-free". Writes a `MemoryReport`
// as its only line, and ends by itself.
const collect = (globalThis as { gc?: () => void }).gc ?? (() => undefined);
const settle = () => new Promise((resolve) => setTimeout(resolve, 20));
async function used(): Promise<number> {
  for (let round = 0; round < 3; round += 1) {
    await settle();
    collect();
  }
  return process.memoryUsage().heapUsed;
}

const Task = defineTask({ kind: "k", payload: v.number() });
const store = new MemoryStore();
let turns = 0;
const claim = store.claim.bind(store);
store.claim = (request) => {
  turns += 1;
  return claim(request);
};
const queue = new Queue(store);
const stop = new AbortController();
const prefetch = process.argv[2] === "claim-as-free" ? 0 : "auto";
const worker = new Worker(store, { pollMax: 1, prefetch }).register(Task, async (_, ctx) => {
  await ctx.extendLease("20m");
});
const running = worker.run({ signal: stop.signal });
const reached = async (isReached: () => boolean) => {
  while (!isReached()) await settle();
};

await reached(() => turns >= 300);
const idleFrom = await used();
const turnsFrom = turns;
await reached(() => turns >= turnsFrom + 1_500);
const idleGrowth = (await used()) - idleFrom;
const idleTurns = turns - turnsFrom;

const batch = 500;
async function runBatch(): Promise<void> {
  await queue.enqueueMany(Array.from({ length: batch }, (_, n) => Task(n)));
  for (;;) {
    await settle();
    const { pendingByKind, claimed } = await queue.stats();
    if (pendingByKind["k"] === undefined && claimed === 0) break;
  }
  await queue.cleanup({ finishedBefore: new Date(Date.now() + 60_000) });
}
for (let n = 0; n < 4; n += 1) await runBatch();
const busyFrom = await used();
const batches = 8;
for (let n = 0; n < batches; n += 1) await runBatch();
const busyGrowth = (await used()) - busyFrom;
stop.abort();
await running;
const report: MemoryReport = { idleTurns, idleGrowth, jobs: batches * batch, busyGrowth };
process.stdout.write(`${JSON.stringify(report)}\n`);
