import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startEmbedded } from "@venturi-tooling/postgres";
import { invariantViolations } from "@venturi-tooling/testing/violations";
import { paces } from "../pace.ts";
import type { ActorProcess } from "../process/actor-process.ts";
import { bundleActor } from "../process/bundle.ts";
import { Stage } from "../stage.ts";
import { growth, megabytes } from "./bounds.ts";
import { Probe, type Reading } from "./probe.ts";

const usage = `npm run soak -- [--minutes N] [--per-second N] [--out FILE]

  --minutes     how long it lasts (default 30); a tenth of it is left to settle in
  --per-second  jobs a second (default 250)
  --out         where the readings go as JSON`;

/** Jobs that ended so long ago are deleted, this often. */
const olderThanMs = 10_000;
const cleanUpMs = 2_000;
const readings = 30;

export async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: "string", default: "30" },
      "per-second": { type: "string", default: "250" },
      out: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const folder = mkdtempSync(join(tmpdir(), "venturi-soak-"));
  try {
    const script = await bundleActor(folder);
    const ms = Number(values.minutes) * 60_000;
    const result = await soak({ folder, script, ms, perSecond: Number(values["per-second"]) });
    if (values.out !== undefined) writeFileSync(values.out, `${JSON.stringify(result, null, 1)}\n`);
    for (const problem of result.problems) console.log(`PROBLEM: ${problem}`);
    console.log(
      `${result.accepted} jobs in ${values.minutes} minutes; ${result.problems.length === 0 ? "level" : "BROKEN"}`,
    );
    return result.problems.length === 0 ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface SoakOptions {
  readonly folder: string;
  readonly script: string;
  readonly ms: number;
  readonly perSecond: number;
}

interface SoakResult {
  readonly accepted: number;
  readonly readings: readonly Reading[];
  readonly problems: readonly string[];
}

async function soak({ folder, script, ms, perSecond }: SoakOptions): Promise<SoakResult> {
  await using server = await startEmbedded({
    durable: false,
    settings: { shared_preload_libraries: "pg_stat_statements" },
  });
  const pace = { ...paces.full, handlerMs: 10, perSecond };
  const log = (line: string) => console.log(line);
  const options = { server, script, folder, seed: 1, pace, log, keepsRecords: false };
  await using stage = await Stage.open(options, {});
  await stage.withClient((client) => client.query("create extension pg_stat_statements"));
  await stage.addWorker();
  await stage.addWorker();
  const producer = await stage.addProducer();
  await producer.call("produce", { perSecond });
  const janitor = new Janitor(stage);
  const taken = await takeReadings(stage, ms);
  const report = await producer.call("endProduction");
  await drained(stage);
  const deleted = await janitor.end();
  for (const worker of [...stage.workers]) await stage.stopWorker(worker);
  const violations = await stage.withClient(async (client) => {
    const { rows } = await client.query("select count(*)::int as n from venturi_jobs");
    const known = report.merged + deleted + Number(rows[0]?.n);
    return [
      ...(await invariantViolations(client)),
      ...(known === report.accepted
        ? []
        : [`${report.accepted} jobs were accepted, ${known} are accounted for`]),
    ];
  });
  const unreleased = stage.reports.reduce((sum, each) => sum + each.unreleased, 0);
  const problems = [
    ...growth(taken),
    ...violations,
    ...stage.complaints,
    ...stage.exits,
    ...report.failures,
    ...(unreleased > 0 ? [`${unreleased} jobs were not released`] : []),
  ];
  return { accepted: report.accepted, readings: taken, problems };
}

async function takeReadings(stage: Stage, ms: number): Promise<Reading[]> {
  const startedAt = performance.now();
  const probe = new Probe(stage);
  await probe.read();
  const taken: Reading[] = [];
  for (let index = 0; index < readings; index++) {
    const dueAt = ms * (0.1 + (0.9 * index) / (readings - 1));
    await sleep(Math.max(0, startedAt + dueAt - performance.now()));
    const reading = await probe.read();
    taken.push(reading);
    console.log(lineOf(reading));
  }
  return taken;
}

function lineOf({ at, heapUsed, rss, ...rest }: Reading): string {
  const memory = Object.keys(heapUsed).map(
    (name) =>
      `${name} ${megabytes(heapUsed[name]).toFixed(1)}/${megabytes(rss[name]).toFixed(0)} MB`,
  );
  const { connections, claimMs, claimBuffers, backlog, tableBytes } = rest;
  return [
    `${at.toFixed(0).padStart(6)} s`,
    ...memory,
    `${connections} connections`,
    `claim ${claimMs.toFixed(2)} ms ${claimBuffers.toFixed(0)} pages`,
    `backlog ${backlog}`,
    `tables ${megabytes(tableBytes).toFixed(1)} MB`,
  ].join("  ");
}

async function drained({ sampler }: Stage): Promise<void> {
  const from = performance.now();
  for (;;) {
    await sleep(250);
    const last = sampler.samples.at(-1);
    if (last && last.at > from && last.backlog === 0) return;
    if (performance.now() - from > 60_000) return;
  }
}

/** Deletes what has ended, all the time. */
class Janitor {
  readonly #actor: ActorProcess;
  readonly #url: string;
  #deleted = 0;
  #isEnding = false;
  readonly #work: Promise<void>;

  constructor(stage: Stage) {
    this.#actor = stage.actor("janitor");
    this.#url = stage.url;
    this.#work = this.#cleanUp();
  }

  /** How many jobs it has deleted. */
  async end(): Promise<number> {
    this.#isEnding = true;
    await this.#work;
    await this.#actor.quit();
    return this.#deleted;
  }

  async #cleanUp(): Promise<void> {
    while (!this.#isEnding) {
      this.#deleted += await this.#actor.call("cleanUp", { url: this.#url, olderThanMs });
      await sleep(cleanUpMs);
    }
  }
}
