import type { JobSummary } from "./job-summary.ts";
import type { ScanProgress } from "./scan-progress.ts";

export interface DemoReport {
  readonly progress: ScanProgress;
  readonly summary: JobSummary;
  readonly elapsedMs: number;
}

const maxDeadShown = 20;

/** What the demo says at its end. */
export function reportLines({ progress, summary, elapsedMs }: DemoReport): string[] {
  const { byStatus, runs, retries, dead } = summary;
  const jobs = [...byStatus.values()].reduce((sum, jobsOfStatus) => sum + jobsOfStatus, 0);
  const seconds = elapsedMs / 1000;
  const ended = (byStatus.get("completed") ?? 0) + dead.length;
  const outcomes = [...byStatus].map(([status, number]) => `${count(number)} ${status}`);
  const lines = [
    "",
    `${count(jobs)} jobs in ${seconds.toFixed(1)} s, ${count(jobs / seconds)} jobs/s`,
    `  outcomes  ${outcomes.join(", ")}`,
    `  runs      ${count(runs)}: ${count(ended)} ended their jobs, ${count(retries)} failed and were tried again, ${count(runs - ended - retries)} paused or were released`,
    `  indexed   ${count(progress.indexed)} files, ${count(progress.bytes)} bytes, ${count(progress.lines)} lines, ${count(progress.words)} words`,
    `  dead      ${count(dead.length)}`,
  ];
  for (const { kind, reason } of dead.slice(0, maxDeadShown)) lines.push(`    ${kind}: ${reason}`);
  if (dead.length > maxDeadShown) lines.push(`    and ${count(dead.length - maxDeadShown)} more`);
  return lines;
}

/** A whole number with its thousands apart. */
export function count(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}
