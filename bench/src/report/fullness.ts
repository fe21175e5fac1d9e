import { ratios } from "../measure/figures.ts";
import type { FullnessCell, FullnessSide } from "../scenarios/fullness.ts";
import { number, type Section, spread, table } from "./section.ts";

function buffers({ costs }: FullnessSide, which: "medianBuffers" | "mostBuffers"): number {
  return costs?.[which] ?? Number.NaN;
}

/** Whether full tables are noticed. */
export function fullnessSection(cells: readonly FullnessCell[]): Section {
  const rows = cells.map(({ name, kinds, emptyKinds, full, empty }) => [
    name,
    emptyKinds === kinds ? `${kinds}` : `${kinds}, compared with ${emptyKinds}`,
    number(buffers(full, "medianBuffers")),
    number(buffers(full, "medianBuffers") / buffers(empty, "medianBuffers"), 2),
    number(buffers(full, "mostBuffers")),
    number(buffers(full, "mostBuffers") / buffers(empty, "mostBuffers"), 2),
    spread(full.perSecond),
    spread(ratios(full.perSecond, empty.perSecond), 2),
  ]);
  const head = [
    "what the tables also hold",
    "kinds registered",
    "buffers of the median claim",
    "÷ empty",
    "of the dearest",
    "÷ empty",
    "jobs/s",
    "÷ empty",
  ];
  const markdown = `## Fullness

venturi at its defaults, concurrency 100, on tables that were filled beforehand and vacuumed; *empty* is the same with as many kinds registered and nothing else in the tables, drained in turn with the full one. Buffers are what all statements of one claim of 100 jobs hit or read, counted claim by claim. Once a second a claim starts from the beginning instead of where the last ones ended, so that nothing is left behind: the dearest claim is such a one, and is shown apart.

${table(head, rows)}`;
  return { markdown, plots: {} };
}
