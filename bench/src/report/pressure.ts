import { type Figure, figure } from "../measure/figures.ts";
import { type PressureCell, type PressureRun, warmUp } from "../scenarios/pressure.ts";
import type { Sizes } from "../sizes.ts";
import { number, type Section, spread, table } from "./section.ts";

const explanations: Readonly<Record<PressureCell["pressure"], string>> = {
  "idle in transaction":
    "A producer keeps jobs waiting; meanwhile another session holds a snapshot and a transaction id, so that no dead row can be cleaned up.",
  "nobody in transaction":
    "The control of the one before: the same phases, and no other session. What the rate falls by here it falls by because of all that is kept, written and cleaned up meanwhile.",
  scanners:
    "Four sessions read the system's tables from end to end in REPEATABLE READ transactions, without a pause. The control is the same four over copies made just before, which take as much of the two cores and hold snapshots as well, but touch none of the pages.",
  overload:
    "Handlers take a millisecond, eight at a time. Jobs come half as fast again as these can be handled, then none.",
  burst:
    "An idle worker, and a great many jobs at once. The rate is that of the time until none is left.",
};

function phaseRate({ phases }: PressureRun, name: string): number {
  return phases.find((phase) => phase.name === name)?.perSecond ?? Number.NaN;
}

/** The rate in one phase divided by that in another of the same run. */
export function phaseRatio(runs: readonly PressureRun[], during: string, before: string): Figure {
  return figure(runs.map((run) => phaseRate(run, during) / phaseRate(run, before)));
}

function verdict({ pressure, runs }: PressureCell): string {
  const drained = runs.map(({ drainedMs }) => (drainedMs ?? Number.NaN) / 1_000);
  const overload = runs.map(({ phases }) => phases.find(({ name }) => name === "overload"));
  switch (pressure) {
    case "idle in transaction":
    case "nobody in transaction":
      return `during ÷ before ${spread(phaseRatio(runs, "during", "before"), 2)}`;
    case "scanners":
      return `scanning the tables ÷ scanning copies ${spread(phaseRatio(runs, "scanning the tables", "scanning copies"), 2)}`;
    case "overload":
      return `backlog at its end ${spread(overload.map((phase) => phase?.backlog ?? Number.NaN))}, drained in ${spread(drained, 1)} s`;
    case "burst":
      return `drained in ${spread(drained, 2)} s`;
  }
}

function phaseRows({ contender, runs }: PressureCell): string[][] {
  const names = runs[0]?.phases.map(({ name }) => name).filter((name) => name !== warmUp) ?? [];
  return names.map((name) => {
    const own = runs.map(({ phases }) => phases.find((phase) => phase.name === name));
    return [
      `${contender}: ${name}`,
      spread(own.map((phase) => phase?.perSecond ?? Number.NaN)),
      spread(own.map((phase) => phase?.backlog ?? Number.NaN)),
      spread(own.map((phase) => phase?.deadTuples ?? Number.NaN)),
    ];
  });
}

/** What bad days do to the rate. */
export function pressureSection(
  cells: readonly PressureCell[],
  { phaseMs, warmUpMs }: Sizes["pressure"],
): Section {
  const names = [...new Set(cells.map(({ pressure }) => pressure))];
  const parts = names.map((name) => {
    const own = cells.filter(({ pressure, runs }) => pressure === name && runs.length > 0);
    const summary = own.map((cell) => {
      const stops = spread(cell.runs.map(({ stopMs }) => stopMs));
      return `- **${cell.contender}**: ${verdict(cell)}; then stopped in ${stops} ms`;
    });
    const head = ["", "jobs/s", "jobs left at its end", "dead rows at its end"];
    return `### ${name[0]?.toUpperCase()}${name.slice(1)}\n\n${explanations[name]}\n\n${table(head, own.flatMap(phaseRows))}\n\n${summary.join("\n")}`;
  });
  const intro = `## Pressure

Each phase lasts ${number(phaseMs / 1_000, 1)} s, except where it ends by itself; before the first one the system runs for ${number(warmUpMs / 1_000, 1)} s, and its tables are analyzed: the first quarter of a minute is faster than any other on a machine that has memory at hand which has been used before. After the last the worker is stopped, in the middle of its work where jobs are left: none of its claims may remain, and what was enqueued must be what was handled and what is left.`;
  return { markdown: [intro, ...parts].join("\n\n"), plots: {} };
}
