/** What a worker has observed since it last decided how far to claim ahead. */
export interface WorkObserved {
  /** Handlers that have ended. */
  readonly finished: number;
  /** How long these took together, in milliseconds. */
  readonly tookMs: number;
  /** For how long at least one handler was running, in milliseconds. */
  readonly busyMs: number;
  /** How many handlers may run at once. */
  readonly concurrency: number;
}

/** How much work is claimed before there is a slot for it, in milliseconds. */
const aheadMs = 25;
/** The most jobs that a worker decides to claim ahead: more would bring nothing, and have to be handed back at a stop. */
const mostAhead = 4_000;

/**
 * How many jobs to claim before there are slots for them: as many as are finished in about 25 ms, so that slots do not wait
 * for the database, and jobs not noticeably for a slot. None where handlers take over 25 ms on average, or where fewer of
 * them end in that time than there are slots: other workers may have these jobs.
 */
export function planAhead({ finished, tookMs, busyMs, concurrency }: WorkObserved): number {
  if (finished === 0 || tookMs / finished > aheadMs) return 0;
  const ahead = Math.floor((finished / Math.max(busyMs, Number.EPSILON)) * aheadMs);
  return ahead < concurrency ? 0 : Math.min(ahead, mostAhead);
}
