/** A measurement made several times: the middle value, and how far they lie apart. */
export interface Figure {
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
  readonly values: readonly number[];
}

/** The middle value; of an even number, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  if (sorted.length % 2 === 1) return sorted[Math.floor(middle)] as number;
  return sorted.length === 0
    ? Number.NaN
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

export function figure(values: readonly number[]): Figure {
  return {
    median: median(values),
    lowest: Math.min(...values),
    highest: Math.max(...values),
    values,
  };
}

/** Round by round, one measurement divided by another made in the same round. */
export function ratios(values: readonly number[], by: readonly number[]): Figure {
  const pairs = values.slice(0, by.length);
  return figure(pairs.map((value, round) => value / (by[round] as number)));
}

/** The value below which a share of the others lies. */
export function percentile(sorted: Float64Array | readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}
