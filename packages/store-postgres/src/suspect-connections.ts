import type { PgClientLike, PgPoolLike } from "./pg-like.ts";

/** By then a pool has let go of what idled in it, in milliseconds. */
const suspectMs = 60_000;

/** How many are looked at where a pool does not say how many it has. */
const mostLooks = 100;

const kept = Symbol("suspect connections");

/**
 * The connections of a pool that are as old as one on which nobody answered: the network that has forgotten one has
 * mostly forgotten them all, and each would be waited for in turn.
 */
export class SuspectConnections {
  readonly #pool: PgPoolLike;
  #fresh = new WeakSet<object>();
  #until = Number.NEGATIVE_INFINITY;

  /** Those of a pool: the same for all stores that it is lent to, since each listens to it. */
  static of(pool: PgPoolLike & { [kept]?: SuspectConnections }): SuspectConnections {
    const known = pool[kept];
    if (known !== undefined) return known;
    const suspects = new SuspectConnections(pool);
    Object.defineProperty(pool, kept, { value: suspects });
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

  /** Hears how a statement failed. */
  learn(error: unknown): void {
    if (!(error instanceof Error) || error.message !== "Query read timeout") return;
    this.#fresh = new WeakSet();
    this.#until = performance.now() + suspectMs;
  }

  /** Takes a connection out of the pool, and ends those that are not to be trusted. */
  async connect(): Promise<PgClientLike> {
    for (let looks = this.#pool.options?.max ?? mostLooks; ; looks -= 1) {
      const client = await this.#pool.connect();
      if (!this.isAny || this.#fresh.has(client) || looks <= 0) return client;
      client.release(true);
    }
  }
}
