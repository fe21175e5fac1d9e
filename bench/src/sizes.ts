/** How much of everything is run. */
export interface Sizes {
  readonly name: "full" | "quick" | "toy";
  /** Rounds, in each of which every contender runs once. */
  readonly rounds: number;
  readonly drain: {
    readonly jobs: number;
    readonly payloads: readonly number[];
    readonly processes: readonly number[];
    /** What is not drained by then is left: the rate so far counts. */
    readonly cutOffMs: number;
    /** The same at default settings, at which some are slow. */
    readonly defaultsCutOffMs: number;
  };
  readonly axis: {
    readonly concurrencies: readonly number[];
    readonly depth: number;
    readonly warmUpMs: number;
    readonly ms: number;
    /** Jobs that wait beforehand where nothing is fed, for each unit of concurrency. */
    readonly filledPerSlot: number;
  };
  readonly latency: {
    readonly rates: readonly { readonly perSecond: number; readonly jobs: number }[];
  };
}

export const sizes: Readonly<Record<Sizes["name"], Sizes>> = {
  full: {
    name: "full",
    rounds: 5,
    drain: {
      jobs: 100_000,
      payloads: [20, 256, 1_000],
      processes: [1, 4],
      cutOffMs: 20_000,
      defaultsCutOffMs: 10_000,
    },
    axis: {
      concurrencies: [4, 16, 64, 128, 256],
      depth: 4_000,
      warmUpMs: 1_000,
      ms: 3_000,
      filledPerSlot: 600,
    },
    latency: {
      rates: [
        { perSecond: 50, jobs: 600 },
        { perSecond: 800, jobs: 8_000 },
        { perSecond: 2_000, jobs: 12_000 },
      ],
    },
  },
  quick: {
    name: "quick",
    rounds: 3,
    drain: {
      jobs: 30_000,
      payloads: [20, 1_000],
      processes: [1, 4],
      cutOffMs: 4_000,
      defaultsCutOffMs: 3_000,
    },
    axis: {
      concurrencies: [4, 64, 256],
      depth: 4_000,
      warmUpMs: 500,
      ms: 1_000,
      filledPerSlot: 300,
    },
    latency: {
      rates: [
        { perSecond: 50, jobs: 150 },
        { perSecond: 800, jobs: 2_400 },
        { perSecond: 2_000, jobs: 4_000 },
      ],
    },
  },
  toy: {
    name: "toy",
    rounds: 1,
    drain: {
      jobs: 500,
      payloads: [20],
      processes: [1, 2],
      cutOffMs: 10_000,
      defaultsCutOffMs: 1_000,
    },
    axis: { concurrencies: [16], depth: 200, warmUpMs: 100, ms: 200, filledPerSlot: 20 },
    latency: { rates: [{ perSecond: 200, jobs: 60 }] },
  },
};
