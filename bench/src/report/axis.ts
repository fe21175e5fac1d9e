import { figure } from "../measure/figures.ts";
import type { AxisOutcome, AxisPoint } from "../scenarios/axis.ts";
import { type Section, spread, table } from "./section.ts";
import { lines } from "./svg.ts";

const feeds: Readonly<Record<AxisPoint["feed"], string>> = {
  kept: "A producer on the same machine keeps 4,000 jobs waiting, by the system's own bulk enqueue. The tables are analyzed before it begins.",
  filled: "All jobs wait beforehand, in analyzed tables; no producer runs.",
};

/** How the rate follows the number of handlers at once. */
export function axisSection({ points, ceiling }: AxisOutcome): Section {
  const concurrencies = [...new Set(points.map(({ concurrency }) => concurrency))];
  const contenders = [...new Set(points.map(({ contender }) => contender))];
  const plots: Record<string, string> = {};
  const parts = [...new Set(points.map(({ feed }) => feed))].map((feed) => {
    const of = (contender: string, concurrency: number) =>
      points.find(
        (point) =>
          point.feed === feed && point.contender === contender && point.concurrency === concurrency,
      )?.perSecond ?? [];
    const rows = contenders.map((contender) => [
      contender,
      ...concurrencies.map((concurrency) => spread(of(contender, concurrency))),
    ]);
    const bare = ["the ceiling", ...concurrencies.map((c) => spread(ceiling[c] ?? []))];
    const name = `axis-${feed}.svg`;
    const title = `setTimeout(1) jobs, jobs/s, ${feed === "kept" ? "queue kept at depth" : "queue filled"}`;
    plots[name] = lines(
      title,
      "handlers at once",
      contenders.map((contender) => ({
        label: contender,
        points: concurrencies
          .map((x) => ({ x, y: figure(of(contender, x)).median }))
          .filter(({ y }) => Number.isFinite(y)),
      })),
    );
    const head = ["handlers at once", ...concurrencies.map(String)];
    return `${feeds[feed]}\n\n![${title}](${name})\n\n${table(head, [...rows, bare])}`;
  });
  const intro = `## Workers axis

Handlers wait for \`setTimeout(1)\`, which takes about 1.135 ms. *The ceiling* is as many bare loops awaiting the same timer, with no queue at all.`;
  return { markdown: [intro, ...parts].join("\n\n"), plots };
}
