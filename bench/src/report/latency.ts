import { ratios } from "../measure/figures.ts";
import type { LatencyCell, LatencyRun } from "../scenarios/latency.ts";
import { number, type Section, spread, table } from "./section.ts";

type Pick = (run: LatencyRun) => number;

const p50: Pick = (run) => run.fromCall.p50;
const p99: Pick = (run) => run.fromCall.p99;

function rateTable(cells: readonly LatencyCell[]): string {
  const floor = cells.find(({ contender }) => contender === "the floor");
  const rows = cells.map(({ contender, runs }) => {
    const of = (pick: Pick) => spread(runs.map(pick), 2);
    const toFloor = (pick: Pick) =>
      floor === undefined || contender === "the floor"
        ? ""
        : spread(ratios(runs.map(pick), floor.runs.map(pick)), 2);
    const unfinished = runs.reduce((sum, run) => sum + run.unfinished, 0);
    return [
      `${contender}${unfinished > 0 ? " ‡" : ""}`,
      of(p50),
      of((run) => run.fromCall.p95),
      of(p99),
      toFloor(p50),
      toFloor(p99),
      of((run) => run.fromReturn.p50),
      of((run) => run.fromReturn.p99),
    ];
  });
  return table(
    [
      "ms",
      "p50",
      "p95",
      "p99",
      "p50 ÷ floor",
      "p99 ÷ floor",
      "p50 from the commit known",
      "p99 from the commit known",
    ],
    rows,
  );
}

/** How long a job waits for its start where workers are idle enough. */
export function latencySection(cells: readonly LatencyCell[]): Section {
  const rates = [...new Set(cells.map(({ perSecond }) => perSecond))];
  const parts = rates.map((rate) => {
    const own = cells.filter(({ perSecond }) => perSecond === rate);
    return `### ${number(rate)} jobs/s\n\n${rateTable(own)}`;
  });
  const [first] = cells;
  const intro = `## Latency

Jobs are enqueued one by one at a fixed rate by one process, whether or not earlier calls have returned, and handled by another (concurrency ${first?.concurrency ?? "–"}). Milliseconds from the call of the enqueue to the start of the handler, the first fifth of each run left out; and from the moment at which the caller knows of the commit, which is below 0 where the handler was faster than the answer. *The floor* is one insert with NOTIFY, one LISTEN and one claim. ‡ could not keep up: some jobs had not run five seconds after the last was enqueued.`;
  return { markdown: [intro, ...parts].join("\n\n"), plots: {} };
}
