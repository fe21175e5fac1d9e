import { type BenchContext, type Contender, title } from "../context.ts";
import type { EnqueueRequest } from "../process/protocol.ts";
import { leftoverSql } from "../systems/leftovers.ts";
import { attempt, type Scenario } from "./scenario.ts";

export interface EnqueueCell {
  readonly contender: string;
  readonly way: string;
  readonly perSecond: readonly number[];
}

type Way = Pick<EnqueueRequest, "mode" | "callers" | "apart"> & { readonly name: string };

/** What the report calls the ways that are compared with one another. */
export const enqueueWays = {
  one: "one at a time",
  callers: "64 callers at once",
  apart: "64 callers, one statement a call",
  many: "batches of 1,000",
  transaction: "16 callers, each in its transaction",
} as const;

const ways: readonly Way[] = [
  { name: enqueueWays.one, mode: "one", callers: 1, apart: false },
  { name: enqueueWays.callers, mode: "callers", callers: 64, apart: false },
  { name: enqueueWays.many, mode: "many", callers: 1, apart: false },
  { name: enqueueWays.transaction, mode: "transaction", callers: 16, apart: false },
];
/** Only venturi shares statements between callers by itself. */
const apart: Way = { name: enqueueWays.apart, mode: "callers", callers: 64, apart: true };

const contenders: readonly Contender[] = [
  { system: "venturi", variant: "best" },
  { system: "graphile-worker", variant: "best" },
  { system: "pg-boss", variant: "best" },
  { system: "bullmq-postgres", variant: "best" },
  { system: "limit", variant: "best" },
];

function waysOf({ system }: Contender): readonly Way[] {
  if (system === "venturi") return [...ways, apart];
  // BullMQ has its own connections only.
  return system === "bullmq-postgres" ? ways.filter(({ mode }) => mode !== "transaction") : ways;
}

async function enqueueOnce(context: BenchContext, contender: Contender, way: Way): Promise<number> {
  const { jobs: single, coalesced, many } = context.sizes.enqueue;
  const isShared = contender.system === "venturi" && way.mode === "callers" && !way.apart;
  const jobs = way.mode === "many" ? many : isShared ? coalesced : single;
  await using site = await context.site(contender.system);
  const producer = site.first;
  await producer.call("openProducer", { variant: contender.variant });
  const { mode, callers, apart } = way;
  // Kinds and code that are new to each other cost the first call more.
  await producer.call("fill", { first: 0, jobs: 100, bytes: 20 });
  const span = await producer.call("enqueue", {
    mode,
    callers,
    apart,
    first: 100,
    jobs,
    bytes: 20,
  });
  const waiting = await site.meter.number(leftoverSql(contender.system) ?? "");
  if (waiting !== jobs + 100)
    context.problem(
      `enqueue ${way.name}, ${title(contender)}: ${waiting} of ${jobs + 100} jobs wait`,
    );
  return jobs / ((span.endedAt - span.startedAt) / 1_000);
}

/** How fast jobs are enqueued, in the ways that applications do it. */
export const enqueue: Scenario<EnqueueCell[]> = {
  name: "enqueue",
  run: async (context) => {
    const all = contenders.flatMap((contender) =>
      waysOf(contender).map((way) => ({ contender, way, perSecond: [] as number[] })),
    );
    // Those who do the same directly after one another.
    const order = [...ways, apart].map(({ name }) => name);
    all.sort((a, b) => order.indexOf(a.way.name) - order.indexOf(b.way.name));
    for (let round = 1; round <= context.sizes.rounds; round += 1) {
      for (const { contender, way, perSecond } of all) {
        const what = `enqueue ${way.name}, ${title(contender)}`;
        const rate = await attempt(context, what, () => enqueueOnce(context, contender, way));
        if (rate === null) continue;
        perSecond.push(rate);
        context.log(`${what}, round ${round}: ${Math.round(rate)} jobs/s`);
      }
    }
    return all.map(({ contender, way, perSecond }) => ({
      contender: title(contender),
      way: way.name,
      perSecond,
    }));
  },
};
