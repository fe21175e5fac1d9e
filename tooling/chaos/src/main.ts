import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type EmbeddedPostgres, startEmbedded } from "@venturi-tooling/postgres";
import { abandoned, type Figures } from "./figures.ts";
import { type Pace, paces } from "./pace.ts";
import { bundleActor } from "./process/bundle.ts";
import { table, totalsOf } from "./report.ts";
import { runScenario } from "./run-scenario.ts";
import { scenarios } from "./scenarios/index.ts";
import type { Scenario } from "./scenarios/scenario.ts";

const usage = `npm run chaos -- [--quick | --test] [--only NAMES] [--seed N] [--out FILE]

  --quick   a selection that takes two minutes, with shorter faults
  --test    the selection of npm test, shorter still
  --only    these scenarios, separated by commas, at the pace chosen
  --seed    what chance decides follows from it (default 1)
  --out     where the figures go as JSON

${scenarios.map(({ name, summary }) => `  ${name.padEnd(24)} ${summary}`).join("\n")}`;

/** What every server of the harness is started with. */
const settings = { max_connections: "500", wal_keep_size: "256MB", max_wal_senders: "4" };

export async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      test: { type: "boolean", default: false },
      only: { type: "string" },
      seed: { type: "string", default: "1" },
      out: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const pace = paces[values.test ? "test" : values.quick ? "quick" : "full"];
  const startedAt = performance.now();
  const all = await runAll(choose(values.only, pace), { pace, seed: Number(values.seed) });
  const minutes = (performance.now() - startedAt) / 60_000;
  const totals = totalsOf(all);
  const broken = all.filter(({ violations }) => violations.length > 0).length;
  const tooFew = values.only === undefined && totals.enqueued < pace.leastJobs;
  console.log(`\n${table(all)}\n`);
  console.log(
    `${totals.enqueued} jobs, ${totals.runs} runs, ${totals.lost} lost, ${totals.doublySettled} settled twice, ` +
      `${totals.exits} processes ended by themselves; ${minutes.toFixed(1)} minutes`,
  );
  console.log(`${all.length - broken} scenarios hold, ${broken} are broken`);
  if (tooFew) console.log(`BROKEN: there were to be ${pace.leastJobs} jobs at least`);
  if (values.out !== undefined)
    writeFileSync(
      values.out,
      `${JSON.stringify({ pace: pace.name, minutes, totals, scenarios: all }, null, 1)}\n`,
    );
  return broken === 0 && !tooFew ? 0 : 1;
}

/** One scenario after another; one that cannot be run to its end takes none of the others with it. */
async function runAll(
  chosen: readonly Scenario[],
  { pace, seed }: { readonly pace: Pace; readonly seed: number },
): Promise<Figures[]> {
  const folder = mkdtempSync(join(tmpdir(), "venturi-chaos-"));
  const all: Figures[] = [];
  let server: EmbeddedPostgres | undefined;
  try {
    const script = await bundleActor(folder);
    for (const scenario of chosen) {
      const { name } = scenario;
      const log = (line: string) => console.log(`${name}: ${line}`);
      server ??= await startEmbedded({ durable: false, settings });
      const options = { server, script, folder, seed, pace, log };
      try {
        all.push(await runScenario(scenario, options));
      } catch (error) {
        all.push(abandoned(name, seed, error));
        // Nobody knows what state it has left its server in: the next one has another.
        await server[Symbol.asyncDispose]();
        server = undefined;
      }
      tell(all.at(-1), log);
    }
  } finally {
    await server?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  }
  return all;
}

function tell(figures: Figures | undefined, log: (line: string) => void): void {
  if (figures === undefined) return;
  const { scenario, seconds, violations } = figures;
  const verdict = violations.length === 0 ? "ok    " : "BROKEN";
  console.log(`${verdict} ${scenario} (${seconds.toFixed(1)} s)`);
  for (const violation of violations.slice(0, 20)) log(violation);
}

function choose(only: string | undefined, pace: Pace): readonly Scenario[] {
  if (only === undefined)
    return scenarios.filter(
      ({ isQuick, isTested }) =>
        pace.name === "full" || (pace.name === "quick" ? isQuick : isTested) === true,
    );
  return only.split(",").map((name) => {
    const found = scenarios.find((scenario) => scenario.name === name);
    if (found === undefined) throw new Error(`there is no scenario ${name}\n\n${usage}`);
    return found;
  });
}
