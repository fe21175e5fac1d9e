import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Results } from "../results.ts";
import { systemNames, whatIsKept } from "../systems/names.ts";
import type { Settings } from "../systems/system.ts";
import { axisSection } from "./axis.ts";
import { costSection } from "./cost.ts";
import { drainSection } from "./drain.ts";
import { enqueueSection } from "./enqueue.ts";
import { fullnessSection } from "./fullness.ts";
import { latencySection } from "./latency.ts";
import { pressureSection } from "./pressure.ts";
import { number, type Section, table } from "./section.ts";
import { summary } from "./summary.ts";

function sections({ scenarios, sizes }: Results): Section[] {
  const { drain, axis, latency, enqueue, pressure, fullness, cost } = scenarios;
  return [
    ...(drain ? [drainSection(drain, sizes.drain.jobs)] : []),
    ...(axis ? [axisSection(axis)] : []),
    ...(latency ? [latencySection(latency)] : []),
    ...(enqueue ? [enqueueSection(enqueue)] : []),
    ...(pressure ? [pressureSection(pressure, sizes.pressure)] : []),
    ...(fullness ? [fullnessSection(fullness)] : []),
    ...(cost ? [costSection(cost, sizes.cost.jobs, sizes.cost.inFlight)] : []),
  ];
}

function settingsText(settings: Settings): string {
  return Object.entries(settings)
    .map(([name, value]) => `\`${name}: ${value}\``)
    .join(", ");
}

function list(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name} ${value}`)
    .join(" · ");
}

function runTable({ runs }: Results): string {
  const rows = Object.entries(runs).map(([name, run]) => [
    name,
    `${run.startedAt.slice(0, 16).replace("T", " ")} UTC`,
    run.source,
    `${run.rounds}`,
    number(run.minutes, 1),
    number(run.loadBefore, 1),
  ]);
  const head = ["scenario", "run at", "venturi's commit", "rounds", "minutes"];
  return table([...head, "load of the machine just before"], rows);
}

function head(results: Results): string {
  const { mode, machine, versions, server, runs } = results;
  const problems = Object.values(runs).flatMap((run) => run.problems);
  const listed = problems.map((problem) => `  - ${problem}`);
  return `# Performance

Made by \`npm run bench\` from [results.json](results.json); nothing here is written by hand. Sizes: **${mode}**.

- Machine: ${machine.cores} × ${machine.cpu}, ${machine.memoryGiB} GiB, ${machine.system}; the server, the producers and the workers share it.
- Versions: ${list(versions)}. Every system runs on this Node, which reads the benchmarks' TypeScript by itself; venturi is used as it is published, from its built packages.
- PostgreSQL: ${list(server)}.

${runTable(results)}

## How to read it

- Within a round every contender runs once, each on a new database, one after another; the next round begins when all have had their turn. Numbers are **median (lowest–highest)** over the rounds. A ratio is taken within each round, then the median of these ratios is shown: machines have fast and slow minutes, and both sides of a ratio have had the same.
- *Best* is what the documentation of a system says about throughput, *defaults* is nothing set but the concurrency. The settings of each are listed at the end. A batch of pg-boss is one call of a handler that ends as a whole; all others run each job by itself.
- *The limit* is the same work as bare SQL through \`pg\`: a claim, a settlement with a journal row, payload validation, and none of what else makes a queue.
- Only public APIs are called. Every job carries a number. Jobs that were lost or ran twice, and systems that failed: ${problems.length === 0 ? "**none**." : `\n\n${listed.join("\n")}`}

## What each keeps

${table(
  ["system", "keeps of a job that has ended"],
  systemNames.map((name) => [name, whatIsKept[name]]),
).replace("---:", "---")}`;
}

/** Writes the report and its plots beside the results. */
export async function writeReport(folder: string, results: Results): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const name of await readdir(folder)) if (name.endsWith(".svg")) await rm(join(folder, name));
  const all = sections(results);
  for (const { plots } of all) {
    for (const [name, plot] of Object.entries(plots)) await writeFile(join(folder, name), plot);
  }
  const settings = Object.entries(results.settings).map(([name, used]) => {
    const text = settingsText(used);
    return `- ${name}: ${text === "" ? "none" : text}`;
  });
  const parts = [head(results), summary(results), ...all.map(({ markdown }) => markdown)];
  parts.push(`## Settings\n\n${settings.sort().join("\n")}`);
  await writeFile(join(folder, "README.md"), `${parts.join("\n\n")}\n`);
  await writeFile(join(folder, "results.json"), `${JSON.stringify(results, null, 1)}\n`);
}
