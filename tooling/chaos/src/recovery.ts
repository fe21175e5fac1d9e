import type { Sample } from "./sampler.ts";

/** How long after the end of a fault the backlog was at its greatest: from then on it shrank. */
export function shrinkingSince(
  samples: readonly Sample[],
  faultEndedAt: number,
  untilMs: number,
): number | null {
  const after = samples.filter(({ at }) => at >= faultEndedAt && at <= faultEndedAt + untilMs);
  const [first] = after;
  const last = after.at(-1);
  if (first === undefined || last === undefined) return null;
  const peak = after.reduce((most, sample) => (sample.backlog > most.backlog ? sample : most));
  if (last.backlog >= peak.backlog) return null;
  return peak === first ? 0 : peak.at - faultEndedAt;
}

export interface Windows {
  readonly windows: number;
  readonly windowMs: number;
}

/** Events a second in equal windows, one after another. */
export function windowRates(
  instants: readonly number[],
  from: number,
  { windows, windowMs }: Windows,
): number[] {
  const counts = Array.from({ length: windows }, () => 0);
  for (const instant of instants) {
    const window = Math.floor((instant - from) / windowMs);
    const count = counts[window];
    if (count !== undefined) counts[window] = count + 1;
  }
  return counts.map((count) => (count * 1_000) / windowMs);
}

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
