import { loadavg } from "node:os";
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
import { type BenchOptions, parseOptions, usage } from "./options.ts";
import { writeReport } from "./report/report.ts";
import { type Results, type ScenarioRun, storedResults, together } from "./results.ts";
import { type ScenarioName, type ScenarioOutcomes, scenarios } from "./scenarios/index.ts";
import { attempt } from "./scenarios/scenario.ts";

/** Everything that decides how fast commits are is as a careful operator has it. */
const serverOptions = {
  shared_preload_libraries: "pg_stat_statements",
  shared_buffers: "1GB",
  max_wal_size: "16GB",
  checkpoint_timeout: "1h",
  wal_compression: "off",
};

/** Runs what the arguments ask for and returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const options = parseOptions(args);
  if (options.help) {
    console.log(usage);
    return 0;
  }
  const node = benchNode();
  // Correctness does not depend on how long a commit takes.
  const durable = options.sizes.name !== "toy";
  await using server = await providePostgres({ durable, settings: serverOptions });
  const settings = await serverSettings(server.url);
  if (!settings["shared_preload_libraries"]?.includes("pg_stat_statements"))
    throw new Error(
      "the server does not count statements: add pg_stat_statements to its shared_preload_libraries",
    );
  const context = new BenchContext({
    serverUrl: server.url,
    redisUrl: options.redisUrl,
    node,
    sizes: options.sizes,
    log: (line) => console.log(`${(performance.now() / 1_000).toFixed(1).padStart(7)} s  ${line}`),
  });
  const bench = new Bench(context, options, {
    mode: options.sizes.name,
    machine: machine(),
    versions: { node: nodeVersion(node), ...packageVersions() },
    server: settings,
    sizes: options.sizes,
    settings: context.settings,
  });
  await bench.run();
  return context.problems.length === 0 ? 0 : 1;
}

class Bench {
  readonly #context: BenchContext;
  readonly #options: BenchOptions;
  readonly #setup: Omit<Results, "runs" | "scenarios">;
  readonly #outcomes: Partial<Record<ScenarioName, unknown>> = {};
  readonly #runs: Partial<Record<ScenarioName, ScenarioRun>> = {};

  constructor(
    context: BenchContext,
    options: BenchOptions,
    setup: Omit<Results, "runs" | "scenarios">,
  ) {
    this.#context = context;
    this.#options = options;
    this.#setup = setup;
  }

  /** One after another; where nothing is timed three at a time, but for costs, which are the whole server's. */
  async run(): Promise<void> {
    const { chosen, sizes } = this.#options;
    const waiting = chosen.filter((name) => name !== "cost");
    const lane = async () => {
      for (let name = waiting.shift(); name !== undefined; name = waiting.shift())
        await this.#runOne(name);
    };
    await Promise.all(Array.from({ length: sizes.name === "toy" ? 3 : 1 }, lane));
    if (chosen.includes("cost")) await this.#runOne("cost");
    if (sizes.name === "toy") await this.#guard();
  }

  /** Runs one and writes the report anew, so that a long run that is interrupted was not in vain. */
  async #runOne(name: ScenarioName): Promise<void> {
    const { problems, sizes } = this.#context;
    const startedAt = new Date();
    const [loadBefore = Number.NaN] = loadavg();
    const known = problems.length;
    const outcome = await attempt<unknown>(this.#context, name, () =>
      scenarios[name].run(this.#context),
    );
    if (outcome === null) return;
    this.#outcomes[name] = outcome;
    this.#runs[name] = {
      startedAt: startedAt.toISOString(),
      minutes: (Date.now() - startedAt.getTime()) / 60_000,
      rounds: sizes.rounds,
      loadBefore,
      source: commit(),
      problems: problems.slice(known),
    };
    const { folder } = this.#options;
    if (folder === null) return;
    const found = { ...this.#setup, runs: this.#runs, scenarios: this.#found };
    await writeReport(folder, together(await storedResults(folder), found));
    this.#context.log(`${name} is written to ${folder}`);
  }

  get #found(): Partial<ScenarioOutcomes> {
    return this.#outcomes as Partial<ScenarioOutcomes>;
  }

  /** Compares costs with those stored, which were measured at the same size, or stores them. */
  async #guard(): Promise<void> {
    const measured = measuredCosts(this.#found);
    if (measured === null) return;
    this.#context.log(`costs: ${JSON.stringify(measured)}`);
    if (this.#options.storeCosts) await storeCosts(measured);
    for (const found of dearer(measured, await storedCosts())) this.#context.problem(found);
  }
}
