import type pg from "pg";
import type { ActorProcess } from "../process/actor-process.ts";
import type { Stage } from "../stage.ts";

/** One look at everything that must not grow. */
export interface Reading {
  /** Since the start, in seconds. */
  readonly at: number;
  /** By process, after a garbage collection, in bytes. */
  readonly heapUsed: Readonly<Record<string, number>>;
  readonly rss: Readonly<Record<string, number>>;
  /** Of workers and producers, to the database. */
  readonly connections: number;
  /** A claim since the last reading, in milliseconds of the server. */
  readonly claimMs: number;
  /** Pages that a claim touched since the last reading. */
  readonly claimBuffers: number;
  readonly backlog: number;
  /** All of venturi's tables and indexes, in bytes. */
  readonly tableBytes: number;
}

interface ClaimCost {
  readonly calls: number;
  readonly ms: number;
  readonly buffers: number;
}

/** Looks at processes and database, again and again. */
export class Probe {
  readonly #stage: Stage;
  readonly #startedAt = performance.now();
  #before: ClaimCost = { calls: 0, ms: 0, buffers: 0 };

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  async read(): Promise<Reading> {
    const { workers, producers } = this.#stage;
    const heapUsed: Record<string, number> = {};
    const rss: Record<string, number> = {};
    for (const actor of [...workers, ...producers]) {
      const memory = await steadyMemory(actor);
      heapUsed[actor.name] = memory.heapUsed;
      rss[actor.name] = memory.rss;
    }
    const at = (performance.now() - this.#startedAt) / 1_000;
    const database = await this.#stage.withClient((client) => this.#database(client));
    return { at, heapUsed, rss, ...database };
  }

  async #database(client: pg.Client): Promise<Omit<Reading, "at" | "heapUsed" | "rss">> {
    const { rows } = await client.query(`select
      (select count(*) from pg_stat_activity where datname = current_database()
        and application_name not like 'chaos%')::int as connections,
      (select count(*) from venturi_queue)::int as backlog,
      (select sum(pg_total_relation_size(c.oid)) from pg_class c
        where c.relname like 'venturi\\_%' and c.relkind = 'r')::float8 as bytes,
      s.* from (select coalesce(sum(calls), 0)::float8 as calls, coalesce(sum(total_exec_time), 0) as ms,
        coalesce(sum(shared_blks_hit + shared_blks_read), 0)::float8 as buffers
        from pg_stat_statements where query like '%set claimed_by = $1::int4%'
          and dbid = (select oid from pg_database where datname = current_database())
      ) s`);
    const { connections, backlog, bytes, calls, ms, buffers } = rows[0] ?? {};
    const before = this.#before;
    this.#before = { calls, ms, buffers };
    const claims = calls - before.calls;
    // Were it passed over, a claim that is written in another way would cost nothing here for ever.
    if (claims < 1)
      throw new Error(
        "Cannot tell what a claim costs: pg_stat_statements has none since the last reading. " +
          "Look whether the pattern of this probe still fits the statement that claims.",
      );
    return {
      connections,
      backlog,
      tableBytes: bytes,
      claimMs: (ms - before.ms) / claims,
      claimBuffers: (buffers - before.buffers) / claims,
    };
  }
}

/** The least of a few looks: what is under way at the moment of one of them is not a leak. */
async function steadyMemory(
  actor: ActorProcess,
): Promise<{ readonly heapUsed: number; readonly rss: number }> {
  let least = await actor.call("memory");
  for (let look = 0; look < 4; look++) {
    const next = await actor.call("memory");
    least = {
      heapUsed: Math.min(least.heapUsed, next.heapUsed),
      rss: Math.min(least.rss, next.rss),
    };
  }
  return least;
}
