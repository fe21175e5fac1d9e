import type { CostCell, JobCost, WorkerCost } from "../scenarios/cost.ts";
import { number, type Section, spread, table } from "./section.ts";

function jobRow({ contender }: CostCell, runs: readonly JobCost[]): string[] {
  const of = (pick: (run: JobCost) => number, digits = 0) => spread(runs.map(pick), digits);
  return [
    contender,
    of(({ walBytes }) => walBytes.enqueue),
    of(({ walBytes }) => walBytes.run),
    of(({ walBytes }) => walBytes.enqueue + walBytes.run),
    of(({ statements }) => statements, 4),
    of(({ commits }) => commits, 4),
    of(({ hotShare }) => hotShare ?? Number.NaN, 3),
    of(({ deadTuples }) => deadTuples, 2),
    of(({ diskBytes }) => diskBytes),
    of(({ nodeCpuMicros }) => nodeCpuMicros, 1),
  ];
}

function workerRow({ contender }: CostCell, worker: WorkerCost): string[] {
  const mebibytes = (bytes: number) => number(bytes / 2 ** 20);
  return [
    contender,
    number(worker.idleStatementsPerMinute, 1),
    mebibytes(worker.idleRssBytes),
    mebibytes(worker.busyRssBytes),
    spread(worker.startMs),
    spread(worker.stopIdleMs),
    spread(worker.stopLoadedMs),
  ];
}

/** What jobs and workers cost besides time. */
export function costSection(cells: readonly CostCell[], jobs: number, inFlight: number): Section {
  const payloads = Object.keys(cells[0]?.jobs ?? {}).map(Number);
  const jobHead = [
    "a job",
    "WAL bytes, enqueue",
    "WAL bytes, run",
    "WAL bytes, both",
    "statements of workers",
    "commits",
    "heap-only share of updates",
    "dead rows",
    "bytes on disk",
    "Node CPU µs",
  ];
  const parts = payloads.map((bytes) => {
    const rows = cells.map((cell) => jobRow(cell, cell.jobs[bytes] ?? []));
    return `### ${number(bytes)} B\n\n${table(jobHead, rows)}`;
  });
  const workerHead = [
    "a worker",
    "statements a minute, idle",
    "MiB, idle",
    `MiB, ${number(inFlight)} jobs in flight`,
    "ms to the first handler",
    "ms to stop, idle",
    "ms to stop, loaded",
  ];
  const workers = cells.flatMap((cell) => (cell.worker ? [workerRow(cell, cell.worker)] : []));
  const intro = `## Cost

${number(jobs)} no-op jobs enqueued in batches of 1,000 and drained by one worker, after 1,000 others that make every page known to the WAL: between checkpoints nothing writes whole pages. Dead rows and bytes on disk are what stood in the tables just after, whether or not autovacuum had passed; what a system keeps of its jobs counts among the bytes.`;
  const worker = `### A worker\n\nStatements are those of a worker with nothing to do; memory is that of its process, all of Node included. A loaded worker is stopped in the middle of the same jobs.\n\n${table(workerHead, workers)}`;
  return { markdown: [intro, ...parts, worker].join("\n\n"), plots: {} };
}
