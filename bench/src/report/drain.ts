import { figure, ratios } from "../measure/figures.ts";
import type { DrainCell } from "../scenarios/drain.ts";
import { number, type Section, spread, table } from "./section.ts";
import { bars } from "./svg.ts";

/** The venturi that a contender is compared with: with the same kind of settings. */
function rival(contender: string): string {
  return contender.endsWith("defaults") ? "venturi, defaults" : "venturi, best";
}

function rates({ runs }: DrainCell): number[] {
  return runs.map((run) => run.perSecond);
}

function cellTable(cells: readonly DrainCell[]): string {
  const rows = cells.map((cell) => {
    const { contender, concurrency, runs } = cell;
    const own = cells.find((other) => other.contender === rival(contender));
    const isPart = runs.some((run) => !run.isComplete);
    return [
      `${contender}${isPart ? " †" : ""}`,
      `${concurrency}`,
      spread(rates(cell)),
      spread(runs.map((run) => run.steadyPerSecond)),
      own === undefined || own === cell ? "" : spread(ratios(rates(own), rates(cell)), 2),
      spread(
        runs.map((run) => run.statementsPerJob),
        3,
      ),
      spread(
        runs.map((run) => run.cpuMicrosPerJob),
        1,
      ),
      spread(runs.map((run) => run.enqueuePerSecond)),
    ];
  });
  return table(
    [
      "",
      "concurrency",
      "jobs/s",
      "jobs/s, steady",
      "venturi ÷ this",
      "statements a job",
      "Node CPU µs a job",
      "enqueued/s in batches of 1,000",
    ],
    rows,
  );
}

/** How fast queues full of no-op jobs are emptied. */
export function drainSection(cells: readonly DrainCell[], jobs: number): Section {
  const keyOf = (cell: DrainCell) => `${cell.bytes}|${cell.processes}|${cell.statistics}`;
  const keys = [...new Set(cells.map(keyOf))];
  const parts: string[] = [];
  const plots: Record<string, string> = {};
  for (const key of keys) {
    const [bytes = "", processes = "", statistics = ""] = key.split("|");
    const own = cells.filter((cell) => keyOf(cell) === key);
    const isNew = statistics === "none";
    const count = processes === "1" ? "one worker process" : `${processes} worker processes`;
    const workers = isNew ? `${count}, before any ANALYZE` : count;
    const name = `drain-${bytes}b-${processes}p${isNew ? "-new" : ""}.svg`;
    const title = `${number(jobs)} no-op jobs of ${number(Number(bytes))} B, ${workers}, jobs/s`;
    plots[name] = bars(
      title,
      own
        .filter(({ runs }) => runs.length > 0)
        .map((cell) => {
          const { median, lowest, highest } = figure(rates(cell));
          return { label: cell.contender, value: median, lowest, highest };
        }),
    );
    parts.push(
      `### ${number(Number(bytes))} B, ${workers}\n\n![${title}](${name})\n\n${cellTable(own)}`,
    );
  }
  const intro = `## Drain

${number(jobs)} no-op jobs wait; workers start and are stopped when all have run. The rate counts from the start of the first worker (connecting included) until the last has stopped and everything is written down. Before that the tables are analyzed, as autovacuum does within a minute or two, except where it says otherwise: some systems are several times slower until then. *Steady* is the rate from the third to the eighth tenth of the jobs. *venturi ÷ this* compares best with best and defaults with defaults. † was not done within the time allowed, so the rate is that of the part it did.`;
  return { markdown: [intro, ...parts].join("\n\n"), plots };
}
