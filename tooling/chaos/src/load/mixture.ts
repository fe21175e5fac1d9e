import type { UnsentJob } from "@venturi/core";
import {
  Adding,
  Capped,
  Defective,
  Failing,
  Hopeless,
  Pausing,
  Plain,
  Replacing,
  Slow,
  Writing,
} from "./tasks.ts";

/** Shares of each kind, in hundredths. */
const shares: readonly (readonly [number, (random: () => number, ms: number) => UnsentJob])[] = [
  [40, (_, ms) => Plain({ ms })],
  [12, (random, ms) => Failing({ ms, failures: Math.floor(random() * 3) })],
  [2, (_, ms) => Hopeless({ ms })],
  [4, (_, ms) => Defective({ ms })],
  [10, (random, ms) => Pausing({ ms, pauses: 1 + Math.floor(random() * 2) })],
  [8, (random, ms) => Adding({ ms, key: `sum-${Math.floor(random() * 40)}`, n: 1 })],
  [4, (random, ms) => Replacing({ ms, key: `last-${Math.floor(random() * 40)}` })],
  [10, (_, ms) => Capped({ ms })],
  [2, (_, ms) => Slow({ ms: ms * 6 })],
  [8, (_, ms) => Writing({ ms })],
];

const hundred = shares.reduce((sum, [share]) => sum + share, 0);

/** The next job of a mixture of all kinds, with handlers that take about `meanMs`. */
export function drawJob(random: () => number, meanMs: number): UnsentJob {
  let rest = random() * hundred;
  const ms = Math.round(meanMs * (0.5 + random()));
  for (const [share, make] of shares) {
    rest -= share;
    if (rest < 0) return make(random, ms);
  }
  return Plain({ ms });
}
