/** What a worker has observed since it last decided how far to claim ahead. */
export interface WorkObserved {
  /** Handlers that have ended. */
  readonly finished: number;
  /** How long these took together, in milliseconds. */
  readonly tookMs: number;
  /** How long any handler ran at all, in milliseconds: waiting for jobs does not count. */
  readonly busyMs: number;
  /** The most handlers at once. */
  readonly concurrency: number;
}

/** How much work is claimed before there is a slot for it, in milliseconds. */
const aheadMs = 25;
/** Nobody claims more than this ahead by itself: more brings nothing, and all of it has to be handed back at a stop. */
const mostAhead = 4_000;

/**
 * How many jobs to claim before there are slots for them: what is finished in about 25 ms, so that slots never wait
 * for the database and no job waits noticeably for a slot. None where jobs are long, so that other workers may have
 * them: where handlers take over 25 ms, or where fewer end in that time than there are slots.
 */
export function planAhead({ finished, tookMs, busyMs, concurrency }: WorkObserved): number {
  if (finished === 0 || tookMs / finished > aheadMs) return 0;
  const ahead = Math.floor((finished / Math.max(busyMs, Number.EPSILON)) * aheadMs);
  return ahead < concurrency ? 0 : Math.min(ahead, mostAhead);
}
