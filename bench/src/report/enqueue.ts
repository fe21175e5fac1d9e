import { ratios } from "../measure/figures.ts";
import { type EnqueueCell, enqueueWays } from "../scenarios/enqueue.ts";
import { type Section, spread, table } from "./section.ts";

/** How fast jobs are enqueued. */
export function enqueueSection(cells: readonly EnqueueCell[]): Section {
  const contenders = [...new Set(cells.map(({ contender }) => contender))];
  const ways = Object.values(enqueueWays);
  const of = (contender: string, way: string) =>
    cells.find((cell) => cell.contender === contender && cell.way === way)?.perSecond ?? [];
  const rows = contenders.map((contender) => [
    contender,
    ...ways.map((way) => spread(of(contender, way))),
  ]);
  const venturi = "venturi, best";
  const shared = ratios(of(venturi, enqueueWays.callers), of(venturi, enqueueWays.apart));
  const bulk = ratios(of(venturi, enqueueWays.many), of("graphile-worker, best", enqueueWays.many));
  const markdown = `## Enqueue

Jobs a second, by one process, 20 B each; each call awaits its commit. Concurrent calls of one venturi queue share statements by themselves; *one statement a call* is the same with a queue for each caller. Pools have 16 connections where they are ours to give, else as many as the system opens by itself. BullMQ cannot enqueue in a transaction of its caller's.

${table(["jobs/s", ...ways], rows)}

- 64 callers of venturi, shared ÷ one statement a call: ${spread(shared, 1)}
- batches of 1,000, venturi ÷ graphile-worker's \`add_jobs\`: ${spread(bulk, 2)}`;
  return { markdown, plots: {} };
}
