import type { Figures } from "./figures.ts";

const columns: readonly (readonly [string, (figures: Figures) => string])[] = [
  ["scenario", ({ scenario }) => scenario],
  ["enqueued", ({ enqueued }) => `${enqueued}`],
  ["runs", ({ runs }) => `${runs}`],
  ["lost", ({ lost, stuck }) => `${lost + stuck}`],
  ["repeated", ({ repeated }) => `${repeated}`],
  ["doubly settled", ({ doublySettled }) => `${doublySettled}`],
  ["recovered", ({ staleRecovered }) => `${staleRecovered}`],
  ["released", ({ released }) => `${released}`],
  [
    "recovery",
    ({ recoveryMs }) => (recoveryMs === null ? "none" : `${(recoveryMs / 1_000).toFixed(1)} s`),
  ],
  ["runs/s before", ({ rateBefore }) => rateBefore.toFixed(0)],
  ["after", ({ rateAfter }) => rateAfter.toFixed(0)],
  ["after ÷ before", ({ ratio }) => ratio.toFixed(2)],
  ["exits", ({ exits }) => `${exits}`],
  ["verdict", ({ violations }) => (violations.length === 0 ? "holds" : "BROKEN")],
];

/** A table for people. */
export function table(all: readonly Figures[]): string {
  const rows = [
    columns.map(([title]) => title),
    ...all.map((each) => columns.map(([, cell]) => cell(each))),
  ];
  const widths = columns.map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
        .join("  "),
    )
    .join("\n");
}

/** Sums over all scenarios. */
export function totalsOf(all: readonly Figures[]) {
  const sum = (of: (figures: Figures) => number) =>
    all.reduce((total, each) => total + of(each), 0);
  return {
    enqueued: sum(({ enqueued }) => enqueued),
    runs: sum(({ runs }) => runs),
    lost: sum(({ lost, stuck }) => lost + stuck),
    repeated: sum(({ repeated }) => repeated),
    doublySettled: sum(({ doublySettled }) => doublySettled),
    exits: sum(({ exits }) => exits),
  };
}
