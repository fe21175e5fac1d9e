import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startEmbedded } from "@venturi-tooling/postgres";
import { type Pace, paces } from "./pace.ts";
import { bundleActor } from "./process/bundle.ts";
import { table } from "./report.ts";
import { type Figures, runScenario } from "./run-scenario.ts";
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
  const chosen = choose(values.only, pace);
  const folder = mkdtempSync(join(tmpdir(), "venturi-chaos-"));
  const all: Figures[] = [];
  try {
    await using server = await startEmbedded({ durable: false, settings });
    const script = await bundleActor(folder);
    for (const scenario of chosen) {
      const log = (line: string) => console.log(`${scenario.name}: ${line}`);
      const options = { server, script, folder, seed: Number(values.seed), pace, log };
      const figures = await runScenario(scenario, options);
      all.push(figures);
      console.log(
        `${figures.violations.length === 0 ? "ok    " : "BROKEN"} ${scenario.name} (${figures.seconds.toFixed(1)} s)`,
      );
      for (const violation of figures.violations.slice(0, 20)) log(violation);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(`\n${table(all)}\n`);
  const broken = all.filter(({ violations }) => violations.length > 0);
  const jobs = all.reduce((sum, { enqueued }) => sum + enqueued, 0);
  console.log(
    `${jobs} jobs; ${all.length - broken.length} scenarios hold, ${broken.length} are broken`,
  );
  if (values.out !== undefined)
    writeFileSync(values.out, `${JSON.stringify({ pace: pace.name, scenarios: all }, null, 1)}\n`);
  return broken.length === 0 ? 0 : 1;
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
