import type { Reading } from "./probe.ts";

/** Readings that are averaged, since one of them says little. */
const averaged = 3;

/** What has grown between the end of the first tenth and the end, a line each. */
export function growth(readings: readonly Reading[]): string[] {
  const base = readings.slice(0, averaged);
  const end = readings.slice(-averaged);
  const [first] = base;
  if (first === undefined || readings.length < 2 * averaged) return ["there are too few readings"];
  const found: string[] = [];
  const compare = (what: string, of: (reading: Reading) => number, most: number, spare = 0) => {
    const [before, after] = [mean(base.map(of)), mean(end.map(of))];
    if (after > before * most + spare)
      found.push(`${what} grew from ${before.toFixed(2)} to ${after.toFixed(2)}`);
  };
  for (const name of Object.keys(first.heapUsed)) {
    compare(`heapUsed of ${name}, in MB`, ({ heapUsed }) => megabytes(heapUsed[name]), 1.1);
    compare(`rss of ${name}, in MB`, ({ rss }) => megabytes(rss[name]), 1.25);
  }
  compare("the number of connections", ({ connections }) => connections, 1, 2);
  compare("pages touched by a claim", ({ claimBuffers }) => claimBuffers, 1.25, 5);
  compare("milliseconds of a claim", ({ claimMs }) => claimMs, 1.5, 0.3);
  compare("tables, in MB", ({ tableBytes }) => megabytes(tableBytes), 1.5, 8);
  compare("the backlog", ({ backlog }) => backlog, 2, 200);
  return found;
}

export function megabytes(bytes = 0): number {
  return bytes / 2 ** 20;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
