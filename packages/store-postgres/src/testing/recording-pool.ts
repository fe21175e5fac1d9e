import type { PgPoolLike, PgQuery, PgQueryable } from "../pg-like.ts";

/** A pool that sends all on to a pool or to one client, and remembers what it was asked. */
export interface RecordingPool extends PgPoolLike {
  /** What was asked since the last look. */
  taken(): readonly PgQuery[];
}

export function recordingPool(target: PgQueryable): RecordingPool {
  let queries: PgQuery[] = [];
  return {
    query: (query) => {
      queries.push(query);
      return target.query(query);
    },
    connect: () => Promise.reject(new Error("statements of this test run one by one")),
    on: () => undefined,
    end: () => Promise.resolve(),
    taken: () => {
      const taken = queries;
      queries = [];
      return taken;
    },
  };
}
