import { type Figure, figure, ratios } from "../measure/figures.ts";
import type { Results } from "../results.ts";
import type { CostCell } from "../scenarios/cost.ts";
import type { Statistics } from "../scenarios/drain.ts";
import { enqueueWays } from "../scenarios/enqueue.ts";
import type { PressureCell } from "../scenarios/pressure.ts";
import { phaseRatio } from "./pressure.ts";
import { number, spread, table } from "./section.ts";

/** One figure that was aimed at: at least so much, or at most. */
interface Aim {
  readonly name: string;
  readonly found: Figure;
  readonly digits: number;
  readonly least?: number;
  readonly most?: number;
}

type Outcomes = Results["scenarios"];

const best = "venturi, best";
const defaults = "venturi, defaults";

function drainAims({ drain = [] }: Outcomes): Aim[] {
  const [main] = drain;
  const rates = (contender: string, statistics: Statistics) =>
    drain
      .find(
        (cell) =>
          cell.contender === contender &&
          cell.bytes === main?.bytes &&
          cell.processes === main.processes &&
          cell.statistics === statistics,
      )
      ?.runs.map(({ perSecond }) => perSecond) ?? [];
  const against = (
    own: string,
    other: string,
    least: number,
    statistics: Statistics = "analyzed",
  ): Aim => ({
    name: `drain, one process${statistics === "none" ? ", before any ANALYZE" : ""}: ${own} ÷ ${other}`,
    found: ratios(rates(own, statistics), rates(other, statistics)),
    digits: 2,
    least,
  });
  return [
    against(best, "graphile-worker, best", 2.5),
    against(defaults, "graphile-worker, defaults", 10),
    against(best, "graphile-worker, best", 2.5, "none"),
    against(best, "pg-boss, best", 4),
    against(best, "pg-boss, best", 4, "none"),
    against(best, "bullmq-postgres, best", 4),
    against(best, "bullmq-redis, best", 2),
    // Where it is fastest: with statistics its bare statements are planned worse.
    against(best, "the limit", 0.6, "none"),
  ];
}

function axisAims({ axis }: Outcomes): Aim[] {
  const aims: Readonly<Record<number, number>> = { 4: 2_600, 16: 11_000, 64: 30_000, 256: 40_000 };
  return (axis?.points ?? [])
    .filter(({ contender, feed }) => contender === defaults && feed === "kept")
    .flatMap(({ concurrency, perSecond }) => {
      const least = aims[concurrency];
      const name = `jobs of a millisecond, ${defaults}, ${concurrency} at once, jobs/s`;
      return least === undefined ? [] : [{ name, found: figure(perSecond), digits: 0, least }];
    });
}

function latencyAims({ latency = [] }: Outcomes): Aim[] {
  return [50, 800].flatMap((rate) => {
    const runs = (contender: string) =>
      latency.find((cell) => cell.perSecond === rate && cell.contender === contender)?.runs ?? [];
    const of = (which: "p50" | "p99", most: number): Aim => ({
      name: `latency at ${rate} jobs/s, ${which}: ${defaults} ÷ the floor`,
      found: ratios(
        runs(defaults).map(({ fromCall }) => fromCall[which]),
        runs("the floor").map(({ fromCall }) => fromCall[which]),
      ),
      digits: 2,
      most,
    });
    return [of("p50", 1.6), of("p99", 2.5)];
  });
}

function enqueueAims({ enqueue = [] }: Outcomes): Aim[] {
  const of = (contender: string, way: string) =>
    enqueue.find((cell) => cell.contender === contender && cell.way === way)?.perSecond ?? [];
  const { callers, apart, many } = enqueueWays;
  return [
    {
      name: "enqueue, 64 callers: shared ÷ one statement a call",
      found: ratios(of(best, callers), of(best, apart)),
      digits: 1,
      least: 12,
    },
    {
      name: "enqueue, batches of 1,000: venturi ÷ graphile-worker's add_jobs",
      found: ratios(of(best, many), of("graphile-worker, best", many)),
      digits: 2,
      least: 1.2,
    },
  ];
}

function pressureAims({ pressure = [] }: Outcomes, phaseMs: number): Aim[] {
  const runs = (name: PressureCell["pressure"]) =>
    pressure.find((cell) => cell.pressure === name && cell.contender === best)?.runs ?? [];
  return [
    {
      name: "idle in transaction: during ÷ before",
      found: phaseRatio(runs("idle in transaction"), "during", "before"),
      digits: 2,
      least: 0.95,
    },
    {
      name: "scanners: over the tables ÷ over copies",
      found: phaseRatio(runs("scanners"), "scanning the tables", "scanning copies"),
      digits: 2,
      least: 0.9,
    },
    {
      name: "overload: drained after it ÷ its own length",
      found: figure(runs("overload").map(({ drainedMs }) => (drainedMs ?? Number.NaN) / phaseMs)),
      digits: 2,
      most: 1,
    },
  ];
}

function fullnessAims({ fullness = [] }: Outcomes): Aim[] {
  const same = fullness.filter(({ kinds, emptyKinds }) => kinds === emptyKinds);
  const buffers = same.map(
    ({ full, empty }) =>
      (full.costs?.medianBuffers ?? Number.NaN) / (empty.costs?.medianBuffers ?? Number.NaN),
  );
  const rates = same.map(({ full, empty }) => ratios(full.perSecond, empty.perSecond).median);
  return [
    {
      name: "fullness, worst cell: buffers a claim ÷ empty",
      found: figure([Math.max(...buffers)]),
      digits: 2,
      most: 1.1,
    },
    {
      name: "fullness, worst cell: rate ÷ empty",
      found: figure([Math.min(...rates)]),
      digits: 2,
      least: 0.9,
    },
  ];
}

function costAims({ cost = [] }: Outcomes): Aim[] {
  const own: CostCell | undefined = cost.find(({ contender }) => contender === best);
  const wal = (bytes: number) =>
    figure((own?.jobs[bytes] ?? []).map(({ walBytes }) => walBytes.enqueue + walBytes.run));
  const small = own?.jobs[20] ?? [];
  const worker = own?.worker;
  return [
    { name: "WAL bytes a job, 20 B", found: wal(20), digits: 0, most: 1_100 },
    { name: "WAL bytes a job, 1 kB", found: wal(1_000), digits: 0, most: 2_200 },
    {
      name: "heap-only share of updates",
      found: figure(small.map(({ hotShare }) => hotShare ?? Number.NaN)),
      digits: 3,
      least: 0.95,
    },
    {
      name: "statements a job",
      found: figure(small.map(({ statements }) => statements)),
      digits: 4,
      most: 0.02,
    },
    {
      name: "Node CPU µs a job",
      found: figure(small.map(({ nodeCpuMicros }) => nodeCpuMicros)),
      digits: 1,
      most: 15,
    },
    {
      name: "statements a minute of an idle worker",
      found: figure(worker ? [worker.idleStatementsPerMinute] : []),
      digits: 1,
      most: 15,
    },
    { name: "ms to stop, idle", found: figure(worker?.stopIdleMs ?? []), digits: 0, most: 100 },
    {
      name: "ms to stop, loaded",
      found: figure(worker?.stopLoadedMs ?? []),
      digits: 0,
      most: 1_000,
    },
  ];
}

function row({ name, found, digits, least, most }: Aim): string[] {
  const aim =
    least === undefined
      ? `≤ ${number(most ?? 0, most === undefined || Number.isInteger(most) ? 0 : 2)}`
      : `≥ ${number(least, Number.isInteger(least) ? 0 : 2)}`;
  const isReached = least === undefined ? found.median <= (most ?? 0) : found.median >= least;
  return [name, aim, spread(found, digits), isReached ? "yes" : "**no**"];
}

/** What was aimed at and what was found. */
export function summary({ scenarios, sizes }: Results): string {
  const aims = [
    ...drainAims(scenarios),
    ...axisAims(scenarios),
    ...latencyAims(scenarios),
    ...enqueueAims(scenarios),
    ...pressureAims(scenarios, sizes.pressure.phaseMs),
    ...fullnessAims(scenarios),
    ...costAims(scenarios),
  ].filter(({ found }) => Number.isFinite(found.median));
  const rows = aims.map(row);
  return `## At a glance

What venturi aims at, what this run found, and whether its median reaches the aim. What lies behind those that do not is in [Where it falls short](shortfalls.md).

${table(["", "aim", "found", "reached"], rows)}`;
}
