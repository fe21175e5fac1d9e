import { createJobIds } from "@venturi/core";

/**
 * Makes job ids that strictly increase within the process. All queues share it, since two of them may enqueue in the
 * same millisecond.
 */
export const nextJobId = createJobIds({ now: Date.now, random: platformRandom() });

/** Numbers in [0, 1) from the platform's generator, which no two processes share. */
function platformRandom(): () => number {
  const drawn = new Uint32Array(256);
  let next = drawn.length;
  return () => {
    if (next === drawn.length) {
      crypto.getRandomValues(drawn);
      next = 0;
    }
    const value = drawn[next] as number;
    next += 1;
    return value / 2 ** 32;
  };
}
