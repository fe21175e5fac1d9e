import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { providePostgres } from "@venturi-tooling/postgres";
import { BenchContext } from "./context.ts";
import { dearer, measuredCosts, storeCosts, storedCosts } from "./guard.ts";
import {
  commit,
  machine,
  nodeVersion,
  packageVersions,
  serverSettings,
} from "./measure/machine.ts";
import { benchNode } from "./node.ts";
import { writeReport } from "./report/report.ts";
import type { Results } from "./results.ts";
import { type ScenarioName, type ScenarioOutcomes, scenarios } from "./scenarios/index.ts";
import { sizes } from "./sizes.ts";

const usage = `npm run bench -- [--quick | --toy] [--only drain,latency] [--redis URL] [--rounds N] [--out FOLDER]

  --quick   some minutes instead of more than an hour
  --toy     for correctness only: tiny sizes, ends with 1 when a system lost a job or ran one twice
  --only    these scenarios: ${Object.keys(scenarios).join(", ")}
  --redis   also BullMQ on the Redis server at this URL; its data are removed
  --out     where results.json and README.md go
  --store-costs  with --toy: from now on these costs are what later ones are compared with (costs.json)

DATABASE_URL names a PostgreSQL server to use, with pg_stat_statements preloaded; without it one is started.`;

/** Everything that decides how fast commits are is as a careful operator has it. */
const serverOptions = {
  shared_preload_libraries: "pg_stat_statements",
  shared_buffers: "1GB",
  max_wal_size: "16GB",
  checkpoint_timeout: "1h",
  wal_compression: "off",
};

export async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      toy: { type: "boolean", default: false },
      only: { type: "string" },
      redis: { type: "string" },
      rounds: { type: "string" },
      out: { type: "string" },
      "store-costs": { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const named = sizes[values.toy ? "toy" : values.quick ? "quick" : "full"];
  const size = values.rounds === undefined ? named : { ...named, rounds: Number(values.rounds) };
  const chosen = (values.only ?? Object.keys(scenarios).join(",")).split(",");
  const unknown = chosen.filter((name) => !(name in scenarios));
  if (unknown.length > 0) throw new Error(`no scenario ${unknown.join(", ")}\n\n${usage}`);
  const node = benchNode();
  // Correctness does not depend on how long a commit takes.
  const durable = size.name !== "toy";
  await using server = await providePostgres({ durable, settings: serverOptions });
  const preloaded = (await serverSettings(server.url))["shared_preload_libraries"] ?? "";
  if (!preloaded.includes("pg_stat_statements"))
    throw new Error(
      "the server does not count statements: add pg_stat_statements to its shared_preload_libraries",
    );
  const context = new BenchContext({
    serverUrl: server.url,
    redisUrl: values.redis ?? null,
    node,
    sizes: size,
    log: (line) => console.log(`${(performance.now() / 1_000).toFixed(1).padStart(7)} s  ${line}`),
  });
  const startedAt = new Date();
  const outcomes = await runScenarios(context, chosen);
  const results = {
    mode: size.name,
    startedAt: startedAt.toISOString(),
    minutes: (Date.now() - startedAt.getTime()) / 60_000,
    machine: machine(),
    versions: { venturi: commit(), node: nodeVersion(node), ...packageVersions() },
    server: await serverSettings(server.url),
    sizes: size,
    settings: context.settings,
    scenarios: outcomes,
    problems: context.problems,
  } satisfies Results;
  if (values.out !== undefined || size.name !== "toy") {
    const folder = values.out ?? fileURLToPath(new URL("../../docs/performance", import.meta.url));
    await writeReport(folder, results);
    console.log(`written to ${folder}`);
  }
  if (size.name === "toy") await guard(context, outcomes, values["store-costs"]);
  return context.problems.length === 0 ? 0 : 1;
}

/** One after another; where nothing is timed three at a time, but for costs, which are the whole server's. */
async function runScenarios(
  context: BenchContext,
  chosen: readonly string[],
): Promise<Partial<ScenarioOutcomes>> {
  const outcomes: Record<string, unknown> = {};
  const waiting = chosen.filter((name) => name !== "cost");
  const lane = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift())
      outcomes[name] = await scenarios[name as ScenarioName].run(context);
  };
  await Promise.all(Array.from({ length: context.sizes.name === "toy" ? 3 : 1 }, lane));
  if (chosen.includes("cost")) outcomes["cost"] = await scenarios.cost.run(context);
  return outcomes as Partial<ScenarioOutcomes>;
}

/** Compares costs with those stored, which were measured at the same size, or stores them. */
async function guard(
  context: BenchContext,
  outcomes: Partial<ScenarioOutcomes>,
  store: boolean,
): Promise<void> {
  const measured = measuredCosts(outcomes);
  if (measured === null) return;
  context.log(`costs: ${JSON.stringify(measured)}`);
  if (store) await storeCosts(measured);
  for (const found of dearer(measured, await storedCosts())) context.problem(found);
}
