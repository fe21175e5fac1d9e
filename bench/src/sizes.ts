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
    readonly feeds: readonly ("kept" | "filled")[];
    /** Whether all are run, or venturi, graphile-worker and the limit only. */
    readonly withPeers: boolean;
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
  readonly enqueue: {
    /** Jobs where each takes a statement of its own. */
    readonly jobs: number;
    /** Jobs where concurrent calls share statements. */
    readonly coalesced: number;
    /** Jobs in batches. */
    readonly many: number;
  };
  readonly pressure: {
    readonly rounds: number;
    /** How long the system runs before the first phase. */
    readonly warmUpMs: number;
    readonly phaseMs: number;
    /** Jobs that are kept waiting. */
    readonly depth: number;
    readonly burstJobs: number;
  };
  readonly fullness: {
    /** Rows of everything but the finished. */
    readonly jobs: number;
    readonly finished: readonly number[];
    readonly held: number;
    /** Jobs of each drain. */
    readonly drained: number;
    /** Claims whose buffers are counted, of 100 jobs each. */
    readonly claims: number;
  };
  readonly cost: {
    readonly jobs: number;
    readonly payloads: readonly number[];
    readonly idleMs: number;
    /** Times that starting and stopping are measured. */
    readonly starts: number;
    readonly inFlight: number;
    /** How long each of those is in flight. */
    readonly holdMs: number;
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
      feeds: ["kept", "filled"],
      withPeers: true,
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
    enqueue: { jobs: 5_000, coalesced: 100_000, many: 100_000 },
    pressure: {
      rounds: 3,
      warmUpMs: 30_000,
      phaseMs: 20_000,
      depth: 5_000,
      burstJobs: 100_000,
    },
    fullness: {
      jobs: 1_000_000,
      finished: [1_000_000, 5_000_000],
      held: 20_000,
      drained: 50_000,
      claims: 400,
    },
    cost: {
      jobs: 50_000,
      payloads: [20, 1_000],
      idleMs: 60_000,
      starts: 5,
      inFlight: 1_000,
      holdMs: 3_000,
    },
  },
  quick: {
    name: "quick",
    rounds: 2,
    drain: {
      jobs: 100_000,
      payloads: [20],
      processes: [1, 4],
      cutOffMs: 5_000,
      defaultsCutOffMs: 3_000,
    },
    axis: {
      feeds: ["kept"],
      withPeers: false,
      concurrencies: [4, 16, 64, 256],
      depth: 4_000,
      warmUpMs: 500,
      ms: 1_000,
      filledPerSlot: 300,
    },
    latency: {
      rates: [
        { perSecond: 50, jobs: 150 },
        { perSecond: 800, jobs: 1_600 },
      ],
    },
    enqueue: { jobs: 1_000, coalesced: 20_000, many: 20_000 },
    pressure: {
      rounds: 1,
      warmUpMs: 500,
      phaseMs: 2_000,
      depth: 5_000,
      burstJobs: 30_000,
    },
    fullness: { jobs: 100_000, finished: [100_000], held: 20_000, drained: 10_000, claims: 100 },
    cost: {
      jobs: 10_000,
      payloads: [20, 1_000],
      idleMs: 10_000,
      starts: 2,
      inFlight: 1_000,
      holdMs: 2_000,
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
    axis: {
      feeds: ["kept"],
      withPeers: true,
      concurrencies: [16],
      depth: 200,
      warmUpMs: 100,
      ms: 200,
      filledPerSlot: 20,
    },
    latency: { rates: [{ perSecond: 200, jobs: 60 }] },
    enqueue: { jobs: 64, coalesced: 300, many: 500 },
    pressure: { rounds: 1, warmUpMs: 60, phaseMs: 250, depth: 300, burstJobs: 500 },
    fullness: { jobs: 2_000, finished: [2_000], held: 500, drained: 300, claims: 60 },
    cost: { jobs: 2_000, payloads: [20], idleMs: 300, starts: 1, inFlight: 100, holdMs: 500 },
  },
};
