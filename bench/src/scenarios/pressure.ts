import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { type BenchContext, type Contender, type Site, title } from "../context.ts";
import { allTimes, deliveries } from "../measure/deliveries.ts";
import type { BenchProcess } from "../process/bench-process.ts";
import { now } from "../process/clock.ts";
import { hotTables, leftoverSql } from "../systems/leftovers.ts";
import { Crew } from "./crew.ts";
import { type Phase, Phases } from "./phases.ts";
import { attempt, type Scenario } from "./scenario.ts";

const pressureNames = [
  "idle in transaction",
  "nobody in transaction",
  "scanners",
  "overload",
  "burst",
] as const;
type PressureName = (typeof pressureNames)[number];

export interface PressureRun {
  readonly phases: readonly Phase[];
  /** From the end of the overload, or the start of the burst, until no job was left; null where it does not apply. */
  readonly drainedMs: number | null;
  readonly stopMs: number;
  /** Jobs of this worker that were still claimed after its stop. */
  readonly leftClaimed: number;
}

export interface PressureCell {
  readonly pressure: PressureName;
  readonly contender: string;
  readonly runs: readonly PressureRun[];
}

const contenders: readonly Contender[] = [
  { system: "venturi", variant: "best" },
  { system: "graphile-worker", variant: "best" },
];
const concurrency = 24;
const scannerCount = 4;
/** A phase that the report leaves out. */
export const warmUp = "warm-up";

/** What one measurement works with. */
interface Rig {
  readonly context: BenchContext;
  readonly contender: Contender;
  readonly site: Site;
  readonly producer: BenchProcess;
  readonly crew: Crew;
  readonly phases: Phases;
  /** Jobs enqueued so far, which is also the number of the next. */
  enqueued: number;
}

async function feed(rig: Rig, during: () => Promise<void>): Promise<void> {
  const { depth } = rig.context.sizes.pressure;
  const { producer, crew } = rig;
  await producer.call("feed", { first: rig.enqueued, bytes: 20, waiting: 0, depth });
  crew.onProgress = () => void producer.call("consumed", crew.handled);
  await during();
  rig.enqueued += await producer.call("endFeed");
}

/** Until memory, caches and statistics are as they are on a server that has been up for a while. */
async function warm({ context, phases, site }: Rig): Promise<void> {
  await phases.run(warmUp, context.sizes.pressure.warmUpMs);
  await site.meter.run("analyze");
}

/** Three phases, of which something may go on in the second. */
async function beforeDuringAfter(
  rig: Rig,
  during: (phase: () => Promise<void>) => Promise<void>,
): Promise<null> {
  const { phaseMs } = rig.context.sizes.pressure;
  await feed(rig, async () => {
    await warm(rig);
    await rig.phases.run("before", phaseMs);
    await during(() => rig.phases.run("during", phaseMs));
    await rig.phases.run("after", phaseMs);
  });
  return null;
}

/** A session that holds a snapshot and a transaction id: nothing that ends from now on can be cleaned up. */
function idleInTransaction(rig: Rig): Promise<null> {
  return beforeDuringAfter(rig, async (phase) => {
    const holder = new pg.Client(rig.site.url);
    await holder.connect();
    await holder.query("begin isolation level repeatable read");
    await holder.query("select pg_current_xact_id()");
    await phase();
    await holder.query("rollback");
    await holder.end();
  });
}

/** The control: the same for as long, and nothing else goes on. */
function nobodyInTransaction(rig: Rig): Promise<null> {
  return beforeDuringAfter(rig, (phase) => phase());
}

/** Sessions that read whole tables in REPEATABLE READ transactions, over and over, while something else goes on. */
async function whileScanning(
  url: string,
  tables: readonly string[],
  during: () => Promise<void>,
): Promise<void> {
  let isOn = true;
  const scan = async () => {
    const client = new pg.Client(url);
    await client.connect();
    while (isOn) {
      await client.query("begin isolation level repeatable read");
      for (const table of tables) await client.query(`select count(*) from ${table}`);
      await client.query("commit");
    }
    await client.end();
  };
  const scanning = Promise.all(Array.from({ length: scannerCount }, scan));
  await during();
  isOn = false;
  await scanning;
}

async function scanners(rig: Rig): Promise<null> {
  const { phaseMs } = rig.context.sizes.pressure;
  const { meter, url } = rig.site;
  const tables = hotTables[rig.contender.system] ?? [];
  const copies = tables.map((_, index) => `bench_copy_${index}`);
  await feed(rig, async () => {
    await warm(rig);
    await rig.phases.run("before", phaseMs);
    for (const [index, table] of tables.entries())
      await meter.run(`create table ${copies[index]} as select * from ${table}`);
    await whileScanning(url, copies, () => rig.phases.run("scanning copies", phaseMs));
    await whileScanning(url, tables, () => rig.phases.run("scanning the tables", phaseMs));
    await rig.phases.run("after", phaseMs);
  });
  return null;
}

/** Half more than the workers can do, and then nothing: how long until they have caught up? */
async function overload(rig: Rig): Promise<number> {
  const { phaseMs } = rig.context.sizes.pressure;
  let capacity = 0;
  await feed(rig, async () => {
    await warm(rig);
    const before = rig.crew.handled;
    const startedAt = now();
    await rig.phases.run("at capacity", phaseMs);
    capacity = (rig.crew.handled - before) / ((now() - startedAt) / 1_000);
  });
  // What was kept waiting is no part of the overload.
  await rig.phases.runUntil(warmUp, rig.enqueued, 10 * phaseMs);
  const perSecond = 1.5 * Math.max(capacity, 100);
  const jobs = 20 * Math.floor((perSecond * phaseMs) / 20_000);
  const request = { first: rig.enqueued, jobs, bytes: 20, perSecond, perCall: 20 };
  const producing = rig.producer.call("produceAtRate", request);
  await rig.phases.run("overload", phaseMs);
  await producing;
  rig.enqueued += jobs;
  const isDone = await rig.phases.runUntil("recovery", rig.enqueued, 5 * phaseMs);
  return isDone ? rig.phases.duration("recovery") : Number.POSITIVE_INFINITY;
}

/** An idle worker, and all at once a great many jobs. */
async function burst(rig: Rig): Promise<number> {
  const { burstJobs, phaseMs } = rig.context.sizes.pressure;
  await sleep(200);
  const startedAt = now();
  const filling = rig.producer.call("fill", { first: 0, jobs: burstJobs, bytes: 20 });
  await rig.phases.runUntil("burst and catch-up", burstJobs, 10 * phaseMs);
  const drainedMs = now() - startedAt;
  await filling;
  rig.enqueued = burstJobs;
  return drainedMs;
}

const pressures: Readonly<Record<PressureName, (rig: Rig) => Promise<number | null>>> = {
  "idle in transaction": idleInTransaction,
  "nobody in transaction": nobodyInTransaction,
  scanners,
  overload,
  burst,
};

async function pressureOnce(
  context: BenchContext,
  contender: Contender,
  pressure: PressureName,
): Promise<PressureRun> {
  const { variant, system } = contender;
  await using site = await context.site(system);
  const producer = site.first;
  await producer.call("openProducer", { variant });
  await context.remember(producer, contender, concurrency);
  const crew = await Crew.gather(site, 1);
  const phases = await Phases.begin(site, crew, leftoverSql(system) ?? "");
  // Overload is about more jobs than there are handlers for, so there it is the handlers that take time.
  const isSlow = pressure === "overload";
  const timerMs = isSlow ? 1 : null;
  await crew.start({ variant, concurrency: isSlow ? 8 : concurrency, timerMs });
  const rig: Rig = { context, contender, site, producer, crew, phases, enqueued: 0 };
  const drainedMs = await pressures[pressure](rig);
  // A clean stop: in the middle of the work where there is a backlog.
  const [result] = await crew.stop();
  const what = `pressure ${pressure}, ${title(contender)}`;
  if (result === undefined) throw new Error(`${what}: no worker`);
  const { doubled } = deliveries([result], 0, rig.enqueued);
  if (doubled > 0) context.problem(`${what}: ${doubled} jobs ran twice`);
  const leftClaimed = await site.meter.number(claimedSql(contender));
  if (leftClaimed > 0)
    context.problem(`${what}: ${leftClaimed} jobs were still claimed after a stop`);
  const left = await site.meter.number(leftoverSql(system) ?? "");
  const { jobs } = deliveries([result], 0, rig.enqueued);
  if (jobs + left !== rig.enqueued)
    context.problem(`${what}: ${rig.enqueued} enqueued, ${jobs} handled, ${left} left`);
  return {
    phases: phases.results(allTimes([result])),
    drainedMs,
    stopMs: result.stoppedAt - result.stopAskedAt,
    leftClaimed,
  };
}

function claimedSql({ system }: Contender): string {
  return system === "venturi"
    ? "select count(*)::float8 as n from venturi_queue where claimed_by is not null"
    : "select count(*)::float8 as n from graphile_worker.jobs where locked_by is not null";
}

/** Bad days: what each does to the rate, and whether it comes back. */
export const pressure: Scenario<PressureCell[]> = {
  name: "pressure",
  run: async (context) => {
    const cells: PressureCell[] = [];
    for (const name of pressureNames) {
      const runs = new Map(contenders.map((contender) => [contender, [] as PressureRun[]]));
      for (let round = 1; round <= context.sizes.pressure.rounds; round += 1) {
        for (const contender of contenders) {
          const what = `pressure ${name}, ${title(contender)}`;
          const run = await attempt(context, what, () => pressureOnce(context, contender, name));
          if (run === null) continue;
          runs.get(contender)?.push(run);
          const rates = run.phases.map((phase) => `${phase.name} ${Math.round(phase.perSecond)}`);
          context.log(`${what}, round ${round}: ${rates.join(", ")} jobs/s`);
        }
      }
      for (const contender of contenders)
        cells.push({
          pressure: name,
          contender: title(contender),
          runs: runs.get(contender) ?? [],
        });
    }
    return cells;
  },
};
