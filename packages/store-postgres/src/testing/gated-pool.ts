import type { PgPoolLike, PgQuery, PgQueryable } from "../pg-like.ts";
import { until } from "./until.ts";

/** A pool whose statements wait at a gate, while it is closed, before they are sent on. */
export interface GatedPool extends PgPoolLike {
  /** Closes the gate while some work goes on. */
  whileClosed<T>(work: () => Promise<T>): Promise<T>;
  /** Resolves when a statement waits at the closed gate. */
  waiting(): Promise<void>;
  /** What was asked since the gate was last closed. */
  readonly asked: readonly PgQuery[];
  /** How much of it has its answer. */
  readonly answered: number;
}

export function gatedPool(target: PgQueryable): GatedPool {
  let gate: Promise<void> | null = null;
  let asked: PgQuery[] = [];
  let answered = 0;
  return {
    query: async (query) => {
      asked.push(query);
      await gate;
      const answer = await target.query(query);
      answered += 1;
      return answer;
    },
    connect: () => Promise.reject(new Error("statements of this test run one by one")),
    on: () => undefined,
    end: () => Promise.resolve(),
    get asked() {
      return asked;
    },
    get answered() {
      return answered;
    },
    waiting: () => until(() => gate !== null && asked.length > 0),
    whileClosed: async (work) => {
      let open = (): void => undefined;
      asked = [];
      answered = 0;
      gate = new Promise((resolve) => {
        open = resolve;
      });
      try {
        return await work();
      } finally {
        gate = null;
        open();
      }
    },
  };
}
