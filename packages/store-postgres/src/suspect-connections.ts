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

/** How long connections stay suspect, in milliseconds: by then a pool has closed those that were idle. */
const suspectMs = 60_000;

/** How many connections are taken in turn where a pool does not say how many it may have. */
const mostLooks = 100;

/** The number counts the shapes of what is kept: another copy of this code, of another version, may share the pool. */
const kept = Symbol.for("venturi.pool-suspects-1");

/**
 * The connections of a pool that are at least as old as one on which a statement went unanswered. A network that has
 * forgotten one connection has mostly forgotten them all, and each would be waited for in turn.
 */
export class SuspectConnections {
  readonly #pool: PgPoolLike;
  #fresh = new WeakSet<object>();
  #until = Number.NEGATIVE_INFINITY;
  /** By statement, once it has gone unanswered. */
  readonly #patienceMs = new Map<string, number>();

  /** The suspects of a pool, shared by all stores that it is lent to, whichever copy of the code made them. */
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
   * How long this statement may go unanswered, in milliseconds. It doubles each time. A server that is alive but holds the
   * statement up, say behind a lock on its table, goes on with it after its connection has been given up: each such
   * statement occupies one more process of the server.
   */
  patienceMs({ name, patienceMs = firstPatienceMs }: Statement): number {
    return this.#patienceMs.get(name) ?? patienceMs;
  }

  /** A statement was answered. */
  answered({ name }: Statement): void {
    if (this.#patienceMs.size > 0) this.#patienceMs.delete(name);
  }

  /** A statement failed; if unanswered, all connections become suspect. */
  learn(statement: Statement, error: unknown): void {
    if (!(error instanceof Error) || error.message !== "Query read timeout") return;
    this.#patienceMs.set(statement.name, Math.min(this.patienceMs(statement) * 2, mostPatienceMs));
    this.#fresh = new WeakSet();
    this.#until = performance.now() + suspectMs;
  }

  /**
   * Takes a connection out of the pool, ending suspect ones on the way. For a prompt statement it waits for a connection
   * that is being made no longer than it would wait for the answer at first; that does not double, since a connection that
   * is given up occupies nothing at the server.
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
