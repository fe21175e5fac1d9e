import { askPool } from "@venturi/core";
import type { PgClientLike, PgPoolLike } from "./pg-like.ts";
import type { Statement } from "./sql/statement.ts";
import { connectWithin } from "./within.ts";

/**
 * How long a prompt statement may go unanswered at first, in milliseconds. A connection that a network has forgotten
 * reports nothing: whoever waits on it would wait for as long as the operating system keeps trying, a quarter of an
 * hour.
 */
export const firstPatienceMs = 8_000;
const mostPatienceMs = 900_000;

/** By then a pool has let go of what idled in it, in milliseconds. */
const suspectMs = 60_000;

/** How many are looked at where a pool does not say how many it has. */
const mostLooks = 100;

/** The number counts the shapes of what is kept: a pool may be shared with another copy of this code, of another version. */
const kept = Symbol.for("venturi.pool-suspects-1");

/**
 * The connections of a pool that are as old as one on which nobody answered: the network that has forgotten one has
 * mostly forgotten them all, and each would be waited for in turn.
 */
export class SuspectConnections {
  readonly #pool: PgPoolLike;
  #fresh = new WeakSet<object>();
  #until = Number.NEGATIVE_INFINITY;
  /** By statement, where it is not the first. */
  readonly #patienceMs = new Map<string, number>();

  /** Those of a pool: the same for all stores that it is lent to, whichever copy of the code made them: each listens. */
  static of(pool: PgPoolLike & { [kept]?: SuspectConnections }): SuspectConnections {
    const known = pool[kept];
    if (known !== undefined) return known;
    const suspects = new SuspectConnections(pool);
    Reflect.defineProperty(pool, kept, { value: suspects });
    return suspects;
  }

  private constructor(pool: PgPoolLike) {
    this.#pool = pool;
    const lender = pool as unknown as {
      on(event: "connect", listener: (client: object) => void): unknown;
    };
    lender.on("connect", (client) => this.#fresh.add(client));
  }

  get isAny(): boolean {
    return performance.now() < this.#until;
  }

  /**
   * How long this statement may go unanswered. It doubles each time: a server that is there but holds the statement up,
   * behind a lock on its table, say, goes on with it when its connection is given up, and each of those occupies
   * another process of the server.
   */
  patienceMs({ name, patienceMs = firstPatienceMs }: Statement): number {
    return this.#patienceMs.get(name) ?? patienceMs;
  }

  /** Hears that a statement was answered. */
  answered({ name }: Statement): void {
    if (this.#patienceMs.size > 0) this.#patienceMs.delete(name);
  }

  /** Hears how a statement failed. */
  learn(statement: Statement, error: unknown): void {
    if (!(error instanceof Error) || error.message !== "Query read timeout") return;
    this.#patienceMs.set(statement.name, Math.min(this.patienceMs(statement) * 2, mostPatienceMs));
    this.#fresh = new WeakSet();
    this.#until = performance.now() + suspectMs;
  }

  /**
   * Takes a connection out of the pool, and ends those that are not to be trusted. A prompt statement waits for one
   * that is being made no longer than for its answer at first: nobody at the server waits in vain for what was given up
   * here.
   */
  async connect({
    isPrompt = false,
    patienceMs = firstPatienceMs,
  }: Partial<Statement>): Promise<PgClientLike> {
    const giveUpAt = performance.now() + patienceMs;
    const make = () => {
      if (!isPrompt) return askPool(this.#pool, () => this.#pool.connect());
      const makingMs = Math.max(0, giveUpAt - performance.now());
      return connectWithin(this.#pool, { makingMs, waitingMs: firstPatienceMs });
    };
    for (let looks = this.#pool.options?.max ?? mostLooks; ; looks -= 1) {
      const client = await make();
      if (!this.isAny || this.#fresh.has(client) || looks <= 0) return client;
      client.release(true);
    }
  }
}
