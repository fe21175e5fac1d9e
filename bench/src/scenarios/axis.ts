import { setTimeout as sleep } from "node:timers/promises";
import { type BenchContext, type Contender, title } from "../context.ts";
import { allTimes, deliveries, rateBetween } from "../measure/deliveries.ts";
import { now } from "../process/clock.ts";
import { Crew } from "./crew.ts";
import { attempt, type Scenario } from "./scenario.ts";

export interface AxisPoint {
  readonly contender: string;
  readonly concurrency: number;
  /** `kept`: a producer on the same machine keeps the depth. `filled`: all jobs wait beforehand. */
  readonly feed: "kept" | "filled";
  readonly perSecond: readonly number[];
}

export interface AxisOutcome {
  readonly points: readonly AxisPoint[];
  /** Turns per second of bare loops, by how many. */
  readonly ceiling: Readonly<Record<number, readonly number[]>>;
}

const always: readonly Contender[] = [
  { system: "venturi", variant: "defaults" },
  { system: "graphile-worker", variant: "best" },
  { system: "limit", variant: "best" },
];
const peers: readonly Contender[] = [
  { system: "venturi", variant: "best" },
  { system: "pg-boss", variant: "best" },
  { system: "bullmq-postgres", variant: "best" },
];
const timerMs = 1;

async function point(
  context: BenchContext,
  contender: Contender,
  concurrency: number,
  feed: AxisPoint["feed"],
): Promise<number> {
  const { depth, warmUpMs, ms, filledPerSlot } = context.sizes.axis;
  const { variant } = contender;
  await using site = await context.site(contender.system);
  const producer = site.first;
  await producer.call("openProducer", { variant });
  await context.remember(producer, contender, concurrency);
  const filled = feed === "kept" ? depth : filledPerSlot * concurrency;
  await producer.call("fill", { first: 0, jobs: filled, bytes: 20 });
  await site.meter.run("analyze");
  const crew = await Crew.gather(site, 1);
  await crew.start({ variant, concurrency, timerMs });
  const startedAt = now();
  if (feed === "kept") {
    await producer.call("feed", { first: filled, bytes: 20, waiting: filled, depth });
    crew.onProgress = () => void producer.call("consumed", crew.handled);
    await sleep(warmUpMs + ms);
  } else {
    await crew.until(filled, warmUpMs + ms);
  }
  const endedAt = now();
  const fed = feed === "kept" ? await producer.call("endFeed") : 0;
  if (context.sizes.name === "toy") await crew.until(filled + fed, 10_000);
  const results = await crew.stop();
  const { doubled, lost } = deliveries(results, 0, filled + fed);
  const what = `axis ${concurrency}, ${title(contender)}`;
  if (doubled > 0) context.problem(`${what}: ${doubled} jobs ran twice`);
  if (lost > 0 && context.sizes.name === "toy") context.problem(`${what}: ${lost} jobs never ran`);
  // What is left at the end of a filled queue is no full load any more.
  const times = allTimes(results);
  const from =
    startedAt + (feed === "kept" ? warmUpMs : Math.min(warmUpMs, (endedAt - startedAt) / 4));
  const to =
    feed === "kept"
      ? endedAt
      : Math.min(endedAt, times[Math.floor(times.length * 0.95)] ?? endedAt);
  return rateBetween(times, from, to);
}

/** Jobs that wait for a timer of a millisecond, more and more of them at once: does the rate follow? */
export const axis: Scenario<AxisOutcome> = {
  name: "axis",
  run: async (context) => {
    const { rounds, axis } = context.sizes;
    const points: AxisPoint[] = [];
    const ceiling: Record<number, number[]> = {};
    const contenders = axis.withPeers ? [...always, ...peers] : always;
    const feeds: readonly AxisPoint["feed"][] = axis.feeds;
    for (const concurrency of axis.concurrencies) {
      const rates = new Map<string, number[]>();
      const loops: number[] = [];
      for (let round = 1; round <= rounds; round += 1) {
        await using site = await context.site("floor");
        const bare = site.first;
        loops.push(await bare.call("timerLoops", { loops: concurrency, timerMs, ms: axis.ms }));
        for (const contender of contenders) {
          for (const feed of feeds) {
            const what = `axis ${concurrency}, ${feed}, ${title(contender)}`;
            const rate = await attempt(context, what, () =>
              point(context, contender, concurrency, feed),
            );
            if (rate === null) continue;
            const key = `${title(contender)}|${feed}`;
            rates.set(key, [...(rates.get(key) ?? []), rate]);
            context.log(`${what}, round ${round}: ${Math.round(rate)} jobs/s`);
          }
        }
      }
      ceiling[concurrency] = loops;
      for (const contender of contenders) {
        for (const feed of feeds) {
          const perSecond = rates.get(`${title(contender)}|${feed}`) ?? [];
          points.push({ contender: title(contender), concurrency, feed, perSecond });
        }
      }
    }
    return { points, ceiling };
  },
};
