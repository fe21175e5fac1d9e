import { setTimeout as sleep } from "node:timers/promises";
import { type BenchContext, type Contender, title } from "../context.ts";
import { deliveries } from "../measure/deliveries.ts";
import { Crew } from "./crew.ts";
import { attempt, type Scenario } from "./scenario.ts";

/** What a job costs the database, from its enqueue to its end. */
export interface JobCost {
  readonly walBytes: { readonly enqueue: number; readonly run: number };
  /** Of these, what the statements wrote, both to enqueue and to run: autovacuum comes when it likes. */
  readonly statementWalBytes: number;
  /** Of workers. */
  readonly statements: number;
  readonly commits: number;
  readonly deadTuples: number;
  /** What all tables and indexes of the system have grown by. */
  readonly diskBytes: number;
  /** Share of updates that were heap-only; null where nothing was updated. */
  readonly hotShare: number | null;
  readonly nodeCpuMicros: number;
}

/** What a worker costs while it has nothing to do, or much at once. */
export interface WorkerCost {
  readonly idleStatementsPerMinute: number;
  readonly idleRssBytes: number;
  readonly busyRssBytes: number;
  /** From the start of a worker to the start of the handler of a job that waits. */
  readonly startMs: readonly number[];
  readonly stopIdleMs: readonly number[];
  readonly stopLoadedMs: readonly number[];
}

export interface CostCell {
  readonly contender: string;
  readonly concurrency: number;
  readonly jobs: Readonly<Record<number, readonly JobCost[]>>;
  readonly worker: WorkerCost | null;
}

const contenders: readonly { contender: Contender; concurrency: number }[] = [
  { contender: { system: "venturi", variant: "best" }, concurrency: 100 },
  { contender: { system: "graphile-worker", variant: "best" }, concurrency: 24 },
  { contender: { system: "pg-boss", variant: "best" }, concurrency: 4_000 },
  { contender: { system: "bullmq-postgres", variant: "best" }, concurrency: 16 },
  { contender: { system: "limit", variant: "best" }, concurrency: 100 },
];

const warmUpJobs = 1_000;

async function jobCost(
  context: BenchContext,
  contender: Contender,
  concurrency: number,
  bytes: number,
): Promise<JobCost> {
  const { jobs } = context.sizes.cost;
  const { variant, system } = contender;
  await using site = await context.site(system);
  const producer = site.first;
  await producer.call("openProducer", { variant });
  await context.remember(producer, contender, concurrency);
  await site.meter.checkpoint();
  // The first change of a page after a checkpoint writes all of it: let that be over, as it is between checkpoints.
  await producer.call("fill", { first: 0, jobs: warmUpJobs, bytes });
  const warming = await Crew.gather(site, 1);
  await warming.start({ variant, concurrency, timerMs: null });
  await warming.until(warmUpJobs, 60_000);
  await warming.stop();
  const empty = await site.meter.tables();
  const before = await site.meter.counters();
  await producer.call("fill", { first: warmUpJobs, jobs, bytes });
  await producer.call("closeProducer");
  const between = await site.meter.counters();
  const crew = await Crew.gather(site, 1);
  await crew.start({ variant, concurrency, timerMs: null });
  await crew.until(jobs, 60_000);
  const results = await crew.stop();
  const after = await site.meter.counters();
  const { doubled, lost } = deliveries(results, warmUpJobs, jobs);
  if (doubled + lost > 0)
    context.problem(`cost, ${title(contender)}: ${lost} jobs lost, ${doubled} ran twice`);
  // The server learns of what its sessions changed when they end, at the latest.
  await site.endProcesses();
  const tables = await site.meter.tables();
  const updates = tables.updates - empty.updates;
  return {
    walBytes: {
      enqueue: (between.walBytes - before.walBytes) / jobs,
      run: (after.walBytes - between.walBytes) / jobs,
    },
    statementWalBytes: (after.statementWalBytes - before.statementWalBytes) / jobs,
    statements: (after.statements - between.statements) / jobs,
    commits: ((await site.meter.counters()).commits - before.commits) / jobs,
    deadTuples: (tables.deadTuples - empty.deadTuples) / jobs,
    diskBytes: (tables.bytes - empty.bytes) / jobs,
    hotShare: updates === 0 ? null : (tables.hotUpdates - empty.hotUpdates) / updates,
    nodeCpuMicros: (results[0]?.cpuMicros ?? Number.NaN) / jobs,
  };
}

/** Stops a worker that has nothing to do, after counting what it sent meanwhile. */
async function idle(context: BenchContext, contender: Contender, concurrency: number, ms: number) {
  const { variant } = contender;
  await using site = await context.site(contender.system);
  const crew = await Crew.gather(site, 1);
  await crew.start({ variant, concurrency, timerMs: null });
  // What is sent at the start is no part of idling.
  await sleep(Math.min(2_000, ms));
  const before = await site.meter.counters();
  await sleep(ms);
  const statements = (await site.meter.counters()).statements - before.statements;
  const { rssBytes } = await crew.first.call("memory");
  const [result] = await crew.stop();
  const stopMs = (result?.stoppedAt ?? Number.NaN) - (result?.stopAskedAt ?? Number.NaN);
  return { perMinute: statements / (ms / 60_000), rssBytes, stopMs };
}

/** Starts a worker while jobs wait, and stops it in the middle of them. */
async function loaded(context: BenchContext, contender: Contender, concurrency: number) {
  const { variant } = contender;
  const { jobs } = context.sizes.cost;
  await using site = await context.site(contender.system);
  const producer = site.first;
  await producer.call("openProducer", { variant });
  await producer.call("fill", { first: 0, jobs, bytes: 20 });
  const crew = await Crew.gather(site, 1);
  await crew.start({ variant, concurrency, timerMs: null });
  await crew.until(jobs / 4, 10_000);
  const [result] = await crew.stop();
  if (result === undefined) throw new Error("no worker");
  const { doubled } = deliveries([result], 0, jobs);
  if (doubled > 0) context.problem(`cost, ${title(contender)}: ${doubled} jobs ran twice`);
  return {
    startMs: (result.times[0] ?? Number.NaN) - result.startedAt,
    stopMs: result.stoppedAt - result.stopAskedAt,
  };
}

/** Memory while so many handlers wait. Without settings for throughput: some would open a connection for each. */
async function busyRss(context: BenchContext, contender: Contender): Promise<number> {
  const { inFlight, holdMs } = context.sizes.cost;
  await using site = await context.site(contender.system);
  const producer = site.first;
  await producer.call("openProducer", { variant: "defaults" });
  await producer.call("fill", { first: 0, jobs: inFlight, bytes: 1_000 });
  const crew = await Crew.gather(site, 1);
  const variant = contender.system === "pg-boss" ? "best" : "defaults";
  await crew.start({ variant, concurrency: inFlight, timerMs: holdMs });
  await sleep(0.8 * holdMs);
  const { rssBytes } = await crew.first.call("memory");
  await crew.stop();
  return rssBytes;
}

async function workerCost(
  context: BenchContext,
  contender: Contender,
  concurrency: number,
): Promise<WorkerCost> {
  const { idleMs, starts } = context.sizes.cost;
  const first = await idle(context, contender, concurrency, idleMs);
  const stopIdleMs = [first.stopMs];
  const startMs: number[] = [];
  const stopLoadedMs: number[] = [];
  for (let start = 1; start <= starts; start += 1) {
    if (start > 1) stopIdleMs.push((await idle(context, contender, concurrency, 200)).stopMs);
    const times = await loaded(context, contender, concurrency);
    startMs.push(times.startMs);
    stopLoadedMs.push(times.stopMs);
  }
  return {
    idleStatementsPerMinute: first.perMinute,
    idleRssBytes: first.rssBytes,
    busyRssBytes: await busyRss(context, contender),
    startMs,
    stopIdleMs,
    stopLoadedMs,
  };
}

/** What jobs and workers cost, apart from time. */
export const cost: Scenario<CostCell[]> = {
  name: "cost",
  run: async (context) => {
    const { rounds, cost } = context.sizes;
    const jobs = contenders.map(
      () => new Map(cost.payloads.map((bytes) => [bytes, [] as JobCost[]])),
    );
    for (let round = 1; round <= rounds; round += 1) {
      for (const bytes of cost.payloads) {
        for (const [index, { contender, concurrency }] of contenders.entries()) {
          const what = `cost ${bytes} B, ${title(contender)}`;
          const run = await attempt(context, what, () =>
            jobCost(context, contender, concurrency, bytes),
          );
          if (run === null) continue;
          jobs[index]?.get(bytes)?.push(run);
          const { enqueue, run: running } = run.walBytes;
          context.log(`${what}, round ${round}: ${Math.round(enqueue + running)} WAL bytes a job`);
        }
      }
    }
    const cells: CostCell[] = [];
    for (const [index, { contender, concurrency }] of contenders.entries()) {
      const name = title(contender);
      const worker = await attempt(context, `cost of a worker, ${name}`, () =>
        workerCost(context, contender, concurrency),
      );
      if (worker !== null)
        context.log(`cost of a worker, ${name}: ${worker.idleStatementsPerMinute} statements/min`);
      const own = Object.fromEntries(jobs[index] ?? []);
      cells.push({ contender: name, concurrency, jobs: own, worker });
    }
    return cells;
  },
};
