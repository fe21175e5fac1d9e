/** How long things take in a run of the harness. */
export interface Pace {
  readonly name: "full" | "quick" | "test";
  /** A rate is the median of so many windows. */
  readonly windows: number;
  readonly windowMs: number;
  /** How long a fault lasts that has no length of its own. */
  readonly faultMs: number;
  /** How long handlers take, in milliseconds. */
  readonly handlerMs: number;
  /** Jobs a second of all producers together; less than half of what the workers do. */
  readonly perSecond: number;
  /** The rate after the fault is to be this share of the rate before, at least. */
  readonly leastRatio: number;
  /** All scenarios together have so many jobs, at least. */
  readonly leastJobs: number;
  /** Times a scenario that repeats its fault by number repeats it. */
  readonly repeats: number;
  /** What the scenario of many kills is made of. */
  readonly massacre: { readonly kills: number; readonly jobs: number };
}

const full: Pace = {
  name: "full",
  windows: 5,
  windowMs: 2_000,
  faultMs: 8_000,
  handlerMs: 70,
  perSecond: 110,
  leastRatio: 0.85,
  leastJobs: 200_000,
  repeats: 20,
  massacre: { kills: 500, jobs: 100_000 },
};

export const paces: Readonly<Record<Pace["name"], Pace>> = {
  full,
  quick: {
    ...full,
    name: "quick",
    leastJobs: 0,
    windowMs: 1_000,
    faultMs: 3_000,
    repeats: 5,
    massacre: { kills: 20, jobs: 4_000 },
  },
  // Windows this short say little about a rate where other tests run beside.
  test: {
    ...full,
    name: "test",
    leastJobs: 0,
    windowMs: 400,
    faultMs: 2_000,
    leastRatio: 0.3,
    repeats: 4,
    massacre: { kills: 10, jobs: 1_000 },
  },
};

/** Jobs that the workers get done in a second, at most: what must be there in advance follows from it. */
export function throughput({ perSecond }: Pace): number {
  return perSecond * 2.5;
}
