import { setTimeout as sleep } from "node:timers/promises";
import { readDiaries } from "./diaries.ts";
import type { Figures, Rate } from "./figures.ts";
import { cap } from "./load/limits.ts";
import { type Pace, throughput } from "./pace.ts";
import { median, shrinkingSince, windowRates } from "./recovery.ts";
import type { Scenario } from "./scenarios/scenario.ts";
import { connections, Stage, type StageOptions } from "./stage.ts";
import { judge, type RunEnd } from "./verdict.ts";

const workerCount = 3;
const warmUpMs = 1_500;
const drainMs = 90_000;
/** Jobs that must be left after the last window: more than all workers hold at once. */
const leastBacklog = 100;

/** Runs one scenario from an empty database to a drained one, and checks everything. */
export async function runScenario(scenario: Scenario, options: StageOptions): Promise<Figures> {
  const startedAt = performance.now();
  const { pace, seed } = options;
  await using stage = await Stage.open(options, scenario.worker ?? {});
  await scenario.prepare?.(stage);
  const producers = [await stage.addProducer(), await stage.addProducer()];
  const spanMs = pace.windows * pace.windowMs;
  // Enough to keep the workers busy to the end of the last window, though less arrives than they get done.
  const seconds = (warmUpMs + 2 * spanMs + pace.faultMs + 6_000) / 1_000;
  const count = Math.ceil((seconds * (throughput(pace) - pace.perSecond)) / producers.length);
  for (const producer of producers) await producer.call("fill", { count });
  if (scenario.startWorkers) await scenario.startWorkers(stage);
  else for (let i = 0; i < workerCount; i++) await stage.addWorker();
  const perSecond = pace.perSecond / producers.length;
  for (const producer of producers) await producer.call("produce", { perSecond });

  await sleep(warmUpMs);
  const controlFrom = Date.now();
  await sleep(spanMs);
  await scenario.fault(stage);
  const faultEndedAt = performance.now();
  const faultEndedOn = Date.now();
  const { recoversWithinMs = 10_000 } = scenario;
  const recoveryMs = await watchRecovery(stage, faultEndedAt, recoversWithinMs);
  const afterFrom = faultEndedOn + (recoveryMs ?? recoversWithinMs);
  await sleep(Math.max(0, afterFrom + spanMs - Date.now()));
  const backlogAfter = stage.sampler.samples.at(-1)?.backlog ?? 0;

  const ended = await Promise.all(producers.map((producer) => producer.call("endProduction")));
  await drained(stage);
  const connected = scenario.sharesConnections ? [] : await countConnections(stage);
  for (const worker of [...stage.workers]) await stage.stopWorker(worker);
  for (const producer of producers) await producer.quit();
  const { runEnds, ...verdict } = await stage.withClient((client) =>
    judge(client, readDiaries(stage.diaryFolder)),
  );
  const rates = {
    before: rateOf(runEnds, controlFrom, pace),
    after: rateOf(runEnds, afterFrom, pace),
  };
  const rateBefore = median(rates.before.windows);
  const rateAfter = median(rates.after.windows);
  const ratio = rateBefore > 0 ? rateAfter / rateBefore : 0;
  const violations = [
    ...verdict.violations,
    ...stage.exits,
    ...stage.complaints,
    ...connected,
    ...ended.flatMap(({ failures }) => failures.slice(0, 3)),
    ...stage.reports.flatMap(({ unreleased, peaks }) => [
      ...(unreleased > 0 ? [`a worker could not let go of ${unreleased} jobs`] : []),
      ...((peaks["capped"] ?? 0) > cap ? [`${peaks["capped"]} capped handlers ran at once`] : []),
    ]),
    ...(recoveryMs === null
      ? [`the backlog did not shrink within ${recoversWithinMs / 1_000} s`]
      : []),
    ...(ratio < pace.leastRatio
      ? [`the rate after is ${ratio.toFixed(2)} of the rate before`]
      : []),
    ...(backlogAfter < leastBacklog
      ? [`${backlogAfter} jobs were left after the last window: the rate after says little`]
      : []),
    ...(scenario.onlySuspectsLose
      ? verdict.losers.filter((name) => !stage.suspects.has(name))
      : []
    ).map((name) => `runs of ${name} were recovered though nothing was done to it`),
    ...((await scenario.verify?.(stage)) ?? []),
  ];
  return {
    scenario: scenario.name,
    seed,
    seconds: (performance.now() - startedAt) / 1_000,
    ...verdict,
    recoveryMs,
    rateBefore,
    rateAfter,
    ratio,
    rates,
    backlogAfter,
    exits: stage.exits.length,
    violations,
  };
}

/** Runs a second in each window, of all workers together and of each of them. */
function rateOf(ends: readonly RunEnd[], from: number, pace: Pace): Rate {
  const names = [...new Set(ends.map(({ worker }) => worker ?? "?"))];
  const of = (some: readonly RunEnd[]) =>
    windowRates(
      some.map(({ at }) => at),
      from,
      pace,
    );
  const byWorker = names.map(
    (name) => [name, of(ends.filter(({ worker }) => (worker ?? "?") === name))] as const,
  );
  return {
    windows: of(ends),
    byWorker: Object.fromEntries(
      byWorker.filter(([, windows]) => windows.some((rate) => rate > 0)),
    ),
  };
}

/** Waits until the backlog has shrunk for a second, as long as that may take. */
async function watchRecovery(
  { sampler }: Stage,
  faultEndedAt: number,
  withinMs: number,
): Promise<number | null> {
  for (;;) {
    await sleep(250);
    const last = sampler.samples.at(-1);
    const recoveryMs = shrinkingSince(sampler.samples, faultEndedAt, withinMs + 2_000);
    if (recoveryMs !== null && last && last.at - faultEndedAt - recoveryMs > 1_000)
      return recoveryMs <= withinMs ? recoveryMs : null;
    if (performance.now() - faultEndedAt > withinMs + 2_000) return null;
  }
}

/** Waits until no job is left that has not ended. */
async function drained({ sampler }: Stage): Promise<void> {
  const from = performance.now();
  while (performance.now() - from < drainMs) {
    await sleep(100);
    const last = sampler.samples.at(-1);
    if (last && last.at > from && last.backlog === 0) return;
  }
}

/** Each worker has its pool and one connection that listens; nobody else is there in its name. */
async function countConnections(stage: Stage): Promise<string[]> {
  return stage.withClient(async (client) => {
    const { rows } = await client.query(`select application_name as name, count(*)::int as n
      from pg_stat_activity where datname = current_database() and application_name like 'worker-%'
        and application_name not like '%-app' group by 1`);
    return rows
      .filter(({ n }) => Number(n) > connections + 1)
      .map(({ name, n }) => `${name} has ${n} connections`);
  });
}
