import type { WorkResult } from "../process/protocol.ts";

export interface Deliveries {
  /** Different jobs that were handled. */
  readonly jobs: number;
  readonly doubled: number;
  readonly lost: number;
}

/** Whether each of the jobs from `first` on was handled exactly once, by whichever worker. */
export function deliveries(
  results: readonly WorkResult[],
  first: number,
  expected: number,
): Deliveries {
  const seen = new Uint8Array(expected);
  let jobs = 0;
  let doubled = 0;
  for (const { ids } of results) {
    for (const id of ids) {
      const place = id - first;
      if (place < 0 || place >= expected) continue;
      if (seen[place] === 0) jobs += 1;
      else doubled += 1;
      seen[place] = 1;
    }
  }
  return { jobs, doubled, lost: expected - jobs };
}

/** The times of all handled jobs, in order. */
export function allTimes(results: readonly WorkResult[]): Float64Array {
  const times = new Float64Array(results.reduce((sum, { times }) => sum + times.length, 0));
  let place = 0;
  for (const result of results) {
    times.set(result.times, place);
    place += result.times.length;
  }
  return times.sort();
}

/** Jobs per second between two times. */
export function rateBetween(times: Float64Array, from: number, to: number): number {
  let jobs = 0;
  for (const time of times) if (time >= from && time < to) jobs += 1;
  return jobs / ((to - from) / 1_000);
}
