import { type BenchContext, type Contender, type Site, title } from "../context.ts";
import { type ClaimCosts, claimCosts } from "../measure/claim-costs.ts";
import { deliveries } from "../measure/deliveries.ts";
import * as bulk from "../systems/venturi-bulk.ts";
import { Crew } from "./crew.ts";
import { attempt, type Scenario } from "./scenario.ts";

/** One database, measured in turn with another. */
export interface FullnessSide {
  readonly costs: ClaimCosts | null;
  readonly perSecond: readonly number[];
}

export interface FullnessCell {
  readonly name: string;
  readonly kinds: number;
  readonly full: FullnessSide;
  /** What it is compared with: an otherwise empty table, and as many kinds unless it is these that are measured. */
  readonly empty: FullnessSide;
  readonly emptyKinds: number;
}

interface Filling {
  readonly name: string;
  readonly kinds: number;
  readonly emptyKinds: number;
  readonly statements: readonly string[];
}

const contender: Contender = { system: "venturi", variant: "defaults" };
const concurrency = 100;
const claimLimit = 100;
const manyKinds = 50;
const kind = "noop";
function count(jobs: number): string {
  return jobs.toLocaleString("en-US");
}

function fillings({ sizes }: BenchContext): Filling[] {
  const { jobs, finished, held } = sizes.fullness;
  const withOne = (name: string, statements: readonly string[]): Filling => ({
    name,
    kinds: 1,
    emptyKinds: 1,
    statements,
  });
  const foreign = bulk.foreign(20, jobs);
  return [
    ...finished.map((jobs) => withOne(`${count(jobs)} finished`, [bulk.finished(kind, jobs)])),
    withOne(`${count(jobs)} scheduled`, [bulk.scheduled(kind, jobs)]),
    withOne(`${count(jobs)} waiting of other kinds`, foreign),
    withOne(`${count(jobs)} dead`, [bulk.dead(kind, jobs)]),
    withOne(`${count(held)} claimed by others at the head`, bulk.heldByOthers(kind, held)),
    { name: "nothing else", kinds: manyKinds, emptyKinds: 1, statements: [] },
    {
      name: `${count(jobs)} waiting of other kinds`,
      kinds: manyKinds,
      emptyKinds: manyKinds,
      statements: foreign,
    },
  ];
}

/** A site that is filled once and measured several times. */
interface FilledSite {
  readonly site: Site;
  readonly filling: Filling;
  enqueued: number;
}

async function filled(context: BenchContext, filling: Filling): Promise<FilledSite> {
  const site = await context.site(contender.system);
  const kinds = Array.from({ length: filling.kinds }, (_, index) => kindName(index));
  for (const name of kinds) await site.meter.run(bulk.ownKind(name));
  for (const statement of filling.statements) await site.meter.run(statement);
  await site.meter.run("vacuum (analyze)");
  await site.meter.checkpoint();
  return { site, filling, enqueued: 0 };
}

function kindName(index: number): string {
  return index === 0 ? kind : `kind_${index}`;
}

async function enqueue(on: FilledSite, jobs: number): Promise<void> {
  const producer = await on.site.start();
  await producer.call("openProducer", { variant: contender.variant });
  await producer.call("fill", { first: on.enqueued, jobs, bytes: 20 });
  await producer.call("closeProducer");
  on.enqueued += jobs;
}

async function drainRate(context: BenchContext, on: FilledSite): Promise<number> {
  const { drained } = context.sizes.fullness;
  const first = on.enqueued;
  await enqueue(on, drained);
  const crew = await Crew.gather(on.site, 1);
  const { variant } = contender;
  await context.remember(crew.first, contender, concurrency);
  await crew.start({ variant, concurrency, timerMs: null, kinds: on.filling.kinds });
  const isDone = await crew.until(drained, 60_000);
  const results = await crew.stop();
  const { doubled, lost } = deliveries(results, first, drained);
  const what = `fullness, ${on.filling.name}, ${title(contender)}`;
  if (doubled > 0) context.problem(`${what}: ${doubled} jobs ran twice`);
  if (lost > 0) context.problem(`${what}: ${lost} jobs ${isDone ? "were lost" : "never ran"}`);
  const [result] = results;
  if (result === undefined) throw new Error("no worker");
  return drained / ((result.stoppedAt - result.startedAt) / 1_000);
}

/** Rates of a full site and of the one it is compared with, in turn. */
async function alternate(
  context: BenchContext,
  sites: readonly FilledSite[],
): Promise<readonly number[][]> {
  const rates = sites.map(() => [] as number[]);
  for (let round = 1; round <= context.sizes.rounds; round += 1) {
    for (const [index, on] of sites.entries()) {
      const what = `fullness, ${on.filling.name}`;
      const rate = await attempt(context, what, () => drainRate(context, on));
      if (rate === null) continue;
      rates[index]?.push(rate);
      context.log(`${what}, round ${round}: ${Math.round(rate)} jobs/s`);
    }
  }
  return rates;
}

async function cost(context: BenchContext, on: FilledSite): Promise<ClaimCosts | null> {
  const { claims } = context.sizes.fullness;
  const { name, kinds } = on.filling;
  return attempt(context, `claims, ${name}`, async () => {
    // What the drains left behind is no part of the question; some more jobs than claimed, so that none comes short.
    await on.site.meter.run("vacuum (analyze)");
    await enqueue(on, (claims + 1) * claimLimit);
    // Locking a row of a page that a vacuum has found visible to all looks at the visibility map as well: a page more
    // for each job. Autovacuum may come in between or not; so that both sides are compared alike, this one always does.
    await on.site.meter.run("vacuum");
    const costs = await claimCosts({
      url: on.site.url,
      kinds: Array.from({ length: kinds }, (_, index) => kindName(index)),
      claims,
      limit: claimLimit,
    });
    context.log(
      `claims, ${name}: median ${costs.medianBuffers}, most ${costs.mostBuffers} buffers`,
    );
    return costs;
  });
}

/** Tables full of what this worker does not want: does it notice? */
export const fullness: Scenario<FullnessCell[]> = {
  name: "fullness",
  run: async (context) => {
    const cells: FullnessCell[] = [];
    for (const filling of fillings(context)) {
      const basis = { ...filling, name: "empty", kinds: filling.emptyKinds, statements: [] };
      await using empty = disposable(await filled(context, basis));
      await using full = disposable(await filled(context, filling));
      const [emptyRates = [], fullRates = []] = await alternate(context, [empty.on, full.on]);
      cells.push({
        name: filling.name,
        kinds: filling.kinds,
        emptyKinds: filling.emptyKinds,
        full: { costs: await cost(context, full.on), perSecond: fullRates },
        empty: { costs: await cost(context, empty.on), perSecond: emptyRates },
      });
    }
    return cells;
  },
};

function disposable(on: FilledSite): { readonly on: FilledSite } & AsyncDisposable {
  return { on, [Symbol.asyncDispose]: () => on.site[Symbol.asyncDispose]() };
}
