import { type BenchContext, type Contender, title } from "../context.ts";
import { allTimes, deliveries, rateBetween } from "../measure/deliveries.ts";
import type { Sizes } from "../sizes.ts";
import { leftoverSql } from "../systems/leftovers.ts";
import { Crew } from "./crew.ts";
import { attempt, type Scenario } from "./scenario.ts";

/** What one contender did with one queue full of jobs. */
interface DrainRun {
  readonly enqueuePerSecond: number;
  /** From the start of the first worker until the last one had stopped, everything written down. */
  readonly perSecond: number;
  /** The third to the eighth tenth of the jobs: without start, warm-up and stop. */
  readonly steadyPerSecond: number;
  readonly jobs: number;
  readonly cpuMicrosPerJob: number;
  readonly statementsPerJob: number;
  readonly isComplete: boolean;
}

/**
 * Whether the server has looked at what it stores: "analyzed" as autovacuum does it within a minute or two, "none"
 * where workers start before that. Some plan badly without.
 */
export type Statistics = "analyzed" | "none";

export interface DrainCell {
  readonly bytes: number;
  readonly processes: number;
  readonly statistics: Statistics;
  readonly contender: string;
  readonly concurrency: number;
  readonly runs: readonly DrainRun[];
}

/** What each contender runs with; the concurrency is its best, or one for all at their defaults. */
const atBest: readonly { contender: Contender; concurrency: number }[] = [
  { contender: { system: "venturi", variant: "best" }, concurrency: 100 },
  { contender: { system: "graphile-worker", variant: "best" }, concurrency: 24 },
  { contender: { system: "pg-boss", variant: "best" }, concurrency: 4_000 },
  { contender: { system: "bullmq-postgres", variant: "best" }, concurrency: 16 },
  { contender: { system: "limit", variant: "best" }, concurrency: 100 },
];
const onRedis = {
  contender: { system: "bullmq-redis", variant: "best" },
  concurrency: 100,
} as const;
const atDefaults: typeof atBest = (
  ["venturi", "graphile-worker", "pg-boss", "bullmq-postgres"] as const
).map((system) => ({ contender: { system, variant: "defaults" }, concurrency: 24 }));

async function drainOnce(
  context: BenchContext,
  contender: Contender,
  concurrency: number,
  cell: Cell,
): Promise<DrainRun> {
  const { jobs, cutOffMs, defaultsCutOffMs } = context.sizes.drain;
  const mostMs = contender.variant === "best" ? cutOffMs : defaultsCutOffMs;
  await using site = await context.site(contender.system);
  const producer = site.first;
  await producer.call("openProducer", { variant: contender.variant });
  await context.remember(producer, contender, concurrency);
  const filled = await producer.call("fill", { first: 0, jobs, bytes: cell.bytes });
  await producer.call("closeProducer");
  if (cell.statistics === "analyzed") await site.meter.run("analyze");
  const crew = await Crew.gather(site, cell.processes);
  const before = await site.meter.counters();
  const starting = crew.start({ variant: contender.variant, concurrency, timerMs: null });
  const isComplete = await starting.then(() => crew.until(jobs, mostMs));
  const results = await crew.stop();
  const after = await site.meter.counters();
  const { jobs: handled, doubled, lost } = deliveries(results, 0, jobs);
  if (doubled > 0) context.problem(`${title(contender)}: ${doubled} jobs ran twice`);
  if (lost > 0 && isComplete) context.problem(`${title(contender)}: ${lost} jobs were lost`);
  if (!isComplete && context.sizes.name === "toy" && contender.variant === "best")
    context.problem(`${title(contender)}: ${lost} of ${jobs} jobs never ran`);
  const sql = leftoverSql(contender.system);
  const left = sql === null || !isComplete ? 0 : await site.meter.number(sql);
  if (left > 0) context.problem(`${title(contender)}: ${left} jobs ran but have not ended`);
  const startedAt = Math.min(...results.map((result) => result.startedAt));
  const stoppedAt = Math.max(...results.map((result) => result.stoppedAt));
  const times = allTimes(results);
  const [from, to] = [0.2, 0.8].map((share) => times[Math.floor(share * times.length)] ?? 0);
  return {
    enqueuePerSecond: jobs / ((filled.endedAt - filled.startedAt) / 1_000),
    perSecond: handled / ((stoppedAt - startedAt) / 1_000),
    steadyPerSecond: rateBetween(times, from ?? 0, to ?? 0),
    jobs: handled,
    cpuMicrosPerJob: results.reduce((sum, { cpuMicros }) => sum + cpuMicros, 0) / handled,
    statementsPerJob: (after.statements - before.statements) / handled,
    isComplete,
  };
}

type Cell = Pick<DrainCell, "bytes" | "processes" | "statistics">;

/** The first is the main one, and the only one that is also run without statistics. */
function cellsOf({ payloads, processes }: Sizes["drain"]): Cell[] {
  const analyzed = payloads.flatMap((bytes) =>
    processes.map((count): Cell => ({ bytes, processes: count, statistics: "analyzed" })),
  );
  const [main, ...others] = analyzed;
  return main === undefined ? [] : [main, { ...main, statistics: "none" }, ...others];
}

/** Queues full of no-op jobs: how fast are they empty? */
export const drain: Scenario<DrainCell[]> = {
  name: "drain",
  run: async (context) => {
    const { rounds, drain } = context.sizes;
    const cells: DrainCell[] = [];
    for (const cell of cellsOf(drain)) {
      const { bytes, processes, statistics } = cell;
      const isMain = bytes === drain.payloads[0] && processes === 1;
      const contenders = [
        ...atBest,
        ...(context.hasRedis && statistics === "analyzed" ? [onRedis] : []),
        ...(isMain && statistics === "analyzed" ? atDefaults : []),
      ];
      const runs = new Map(contenders.map(({ contender }) => [contender, [] as DrainRun[]]));
      for (let round = 1; round <= rounds; round += 1) {
        for (const { contender, concurrency } of contenders) {
          const what = `drain ${bytes} B, ${processes} processes, statistics ${statistics}, ${title(contender)}`;
          const run = await attempt(context, what, () =>
            drainOnce(context, contender, concurrency, cell),
          );
          if (run === null) continue;
          runs.get(contender)?.push(run);
          context.log(`${what}, round ${round}: ${Math.round(run.perSecond)} jobs/s`);
        }
      }
      for (const { contender, concurrency } of contenders) {
        const own = runs.get(contender) ?? [];
        cells.push({ ...cell, contender: title(contender), concurrency, runs: own });
      }
    }
    return cells;
  },
};
