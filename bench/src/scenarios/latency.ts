import { type BenchContext, type Contender, title } from "../context.ts";
import { deliveries } from "../measure/deliveries.ts";
import { percentile } from "../measure/figures.ts";
import type { EnqueueTimes, WorkResult } from "../process/protocol.ts";
import { Crew } from "./crew.ts";
import { attempt, type Scenario } from "./scenario.ts";

/** Milliseconds of one round. */
interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export interface LatencyRun {
  /** From the call of the enqueue to the start of the handler. */
  readonly fromCall: Percentiles;
  /** From the return of the enqueue, which is when its caller knows of the commit; below 0 where the handler was faster. */
  readonly fromReturn: Percentiles;
  readonly unfinished: number;
}

export interface LatencyCell {
  readonly contender: string;
  readonly concurrency: number;
  readonly perSecond: number;
  readonly runs: readonly LatencyRun[];
}

const contenders: readonly Contender[] = [
  { system: "floor", variant: "best" },
  { system: "venturi", variant: "defaults" },
  { system: "graphile-worker", variant: "best" },
  { system: "graphile-worker", variant: "defaults" },
  { system: "pg-boss", variant: "best" },
  { system: "bullmq-postgres", variant: "best" },
];
const concurrency = 24;
/** The first of a run find cold caches and code that is not compiled yet. */
const warmUpShare = 0.2;

function percentiles(values: number[]): Percentiles {
  const sorted = values.sort((a, b) => a - b);
  return {
    p50: percentile(sorted, 0.5),
    p95: percentile(sorted, 0.95),
    p99: percentile(sorted, 0.99),
  };
}

function latencies(enqueued: EnqueueTimes, { ids, times }: WorkResult, jobs: number): LatencyRun {
  const fromCall: number[] = [];
  const fromReturn: number[] = [];
  for (const [place, id] of ids.entries()) {
    if (id < warmUpShare * jobs) continue;
    const time = times[place] as number;
    fromCall.push(time - (enqueued.calledAt[id] as number));
    fromReturn.push(time - (enqueued.returnedAt[id] as number));
  }
  return {
    fromCall: percentiles(fromCall),
    fromReturn: percentiles(fromReturn),
    unfinished: jobs - ids.length,
  };
}

async function latencyOnce(
  context: BenchContext,
  contender: Contender,
  { perSecond, jobs }: { perSecond: number; jobs: number },
): Promise<LatencyRun> {
  const { variant } = contender;
  await using site = await context.site(contender.system);
  const producer = site.first;
  await producer.call("openProducer", { variant });
  await context.remember(producer, contender, concurrency);
  const crew = await Crew.gather(site, 1);
  await crew.start({ variant, concurrency, timerMs: null });
  const request = { first: 0, jobs, bytes: 20, perSecond, perCall: 1 };
  const enqueued = await producer.call("produceAtRate", request);
  await crew.until(jobs, 5_000);
  const results = await crew.stop();
  const { doubled, lost } = deliveries(results, 0, jobs);
  const what = `latency ${perSecond}/s, ${title(contender)}`;
  if (doubled > 0) context.problem(`${what}: ${doubled} jobs ran twice`);
  if (lost > 0 && context.sizes.name === "toy") context.problem(`${what}: ${lost} jobs never ran`);
  return latencies(enqueued, results[0] as WorkResult, jobs);
}

/** Jobs that come one by one, at fixed rates: how long until each starts? */
export const latency: Scenario<LatencyCell[]> = {
  name: "latency",
  run: async (context) => {
    const cells: LatencyCell[] = [];
    for (const rate of context.sizes.latency.rates) {
      const runs = new Map(contenders.map((contender) => [contender, [] as LatencyRun[]]));
      for (let round = 1; round <= context.sizes.rounds; round += 1) {
        for (const contender of contenders) {
          const what = `latency ${rate.perSecond}/s, ${title(contender)}`;
          const run = await attempt(context, what, () => latencyOnce(context, contender, rate));
          if (run === null) continue;
          runs.get(contender)?.push(run);
          const { p50, p99 } = run.fromCall;
          context.log(`${what}, round ${round}: p50 ${p50.toFixed(2)} p99 ${p99.toFixed(2)} ms`);
        }
      }
      for (const contender of contenders) {
        const own = runs.get(contender) ?? [];
        const { perSecond } = rate;
        cells.push({ contender: title(contender), concurrency, perSecond, runs: own });
      }
    }
    return cells;
  },
};
