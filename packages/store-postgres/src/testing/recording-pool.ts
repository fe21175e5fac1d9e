import type { PgPoolLike, PgQuery, PgQueryable } from "../pg-like.ts";

/** A pool that sends all on to a pool or to one client, and can tell what it was asked. */
export interface RecordingPool extends PgPoolLike {
  /** What is asked while some work goes on. */
  queriesOf(work: () => Promise<unknown>): Promise<readonly PgQuery[]>;
  /** The same, but nothing is sent on: every query is answered by no rows. */
  queriesWithheld(work: () => Promise<unknown>): Promise<readonly PgQuery[]>;
}

/** The verb of a statement, as in `venturi_claim_all_1x2y3z`. */
export function verbOf({ name = "" }: PgQuery): string {
  return name.split("_").slice(1, -1).join("_");
}

export function recordingPool(target: PgQueryable): RecordingPool {
  let queries: PgQuery[] = [];
  let withhold = false;
  const record = async (work: () => Promise<unknown>) => {
    queries = [];
    await work();
    return queries;
  };
  return {
    query: async (query) => {
      queries.push(query);
      return withhold ? { rows: [] } : target.query(query);
    },
    connect: () => Promise.reject(new Error("statements of this test run one by one")),
    on: () => undefined,
    end: () => Promise.resolve(),
    queriesOf: record,
    queriesWithheld: async (work) => {
      withhold = true;
      try {
        return await record(work);
      } finally {
        withhold = false;
      }
    },
  };
}
