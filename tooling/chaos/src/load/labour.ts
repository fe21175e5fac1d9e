import { setTimeout as sleep } from "node:timers/promises";
import { type JobContext, Outcome, TaskError } from "@venturi/core";
import { PostgresStore, type PostgresTransaction } from "@venturi/store-postgres";
import { Worker } from "@venturi/worker";
import pg from "pg";
import type { WorkerReport, WorkerSetup } from "../process/protocol.ts";
import { Diary } from "./diary.ts";
import { cap } from "./limits.ts";
import * as tasks from "./tasks.ts";

type Context<Carry> = JobContext<Carry, PostgresTransaction>;
type Ending = ReturnType<typeof Outcome.pauseFor> | undefined;

/** A worker with a handler for every kind, that writes down what its handlers do. */
export class Labour {
  readonly #store: PostgresStore;
  readonly #pool: pg.Pool;
  readonly #worker: Worker<undefined, PostgresTransaction>;
  readonly #running: Promise<{ readonly unreleased: readonly string[] }>;
  readonly #diary: Diary;
  readonly #now: Record<string, number> = {};
  readonly #peaks: Record<string, number> = {};

  private constructor(setup: WorkerSetup, store: PostgresStore) {
    this.#store = store;
    this.#pool = new pg.Pool({
      connectionString: setup.applicationUrl ?? setup.url,
      max: 3,
      application_name: `${setup.name}-app`,
      // What an application that wants to hear of a lost network sets.
      query_timeout: 5_000,
      connectionTimeoutMillis: 5_000,
    });
    this.#pool.on("error", () => undefined);
    this.#pool.on("connect", (client) => client.on("error", () => undefined));
    this.#diary = new Diary(setup.file);
    this.#worker = this.#registered(
      new Worker(store, { ...setup.options, name: setup.name, backstop: null }),
    );
    this.#running = this.#worker.run();
    // Whoever stops it hears of it.
    this.#running.catch(() => undefined);
  }

  static async start(setup: WorkerSetup): Promise<Labour> {
    const { url, listenUrl, listen, preparedStatements, connections, name } = setup;
    const pool = { listen, preparedStatements, maxConnections: connections };
    const store = await PostgresStore.connect({
      connectionString: named(url, name),
      ...(listenUrl === undefined ? {} : { listenConnectionString: named(listenUrl, name) }),
      ...pool,
    });
    return new Labour(setup, store);
  }

  async stop(): Promise<WorkerReport> {
    await this.#worker.stop();
    const { unreleased } = await this.#running;
    await this.#store.close();
    await this.#pool.end();
    return { unreleased: unreleased.length, peaks: this.#peaks };
  }

  #registered(worker: Worker<undefined, PostgresTransaction>): typeof worker {
    return worker
      .register(tasks.Plain, this.#handler())
      .register(
        tasks.Failing,
        this.#handler(({ failures }, ctx) => {
          if (ctx.carry.failed >= failures) return;
          ctx.carry.failed += 1;
          throw new Error("the world is not ready");
        }),
      )
      .register(
        tasks.Hopeless,
        this.#handler(() => {
          throw TaskError.permanent("there is no such recipient");
        }),
      )
      .register(
        tasks.Defective,
        this.#handler((_, ctx) => {
          if (ctx.carry.changes > 0) throw TaskError.permanent("a defect has changed the carry");
          if (ctx.failureCount > 0) return;
          ctx.carry.changes += 1;
          throw new ReferenceError("x is not defined");
        }),
      )
      .register(
        tasks.Pausing,
        this.#handler(({ pauses }, ctx) => {
          if (ctx.carry.paused >= pauses) return;
          ctx.carry.paused += 1;
          return Outcome.pauseFor(30);
        }),
      )
      .register(tasks.Adding, this.#handler())
      .register(tasks.Replacing, this.#handler())
      .register(tasks.Capped, this.#handler(), { cap })
      .register(tasks.Slow, this.#handler())
      .register(
        tasks.Writing,
        this.#handler(async (_, ctx) => this.#write(ctx)),
      );
  }

  /** A handler that waits, ends in its own way, and writes both into the diary. */
  #handler<Payload extends { readonly ms: number }, Carry>(
    end: (payload: Payload, ctx: Context<Carry>) => Ending | Promise<Ending> = () => undefined,
  ): (payload: Payload, ctx: Context<Carry>) => Promise<Ending> {
    return async (payload, ctx) => {
      const { id, runCount, kind } = ctx;
      this.#diary.started(id, runCount);
      const running = (this.#now[kind] ?? 0) + 1;
      this.#now[kind] = running;
      this.#peaks[kind] = Math.max(this.#peaks[kind] ?? 0, running);
      try {
        await sleep(payload.ms);
        const ending = await end(payload, ctx);
        this.#diary.ended(id, runCount, ending === undefined ? "completed" : "paused");
        return ending;
      } catch (error) {
        this.#diary.ended(id, runCount, "failed");
        throw error;
      } finally {
        this.#now[kind] = (this.#now[kind] ?? 0) - 1;
      }
    };
  }

  async #write(ctx: Context<unknown>): Promise<undefined> {
    const client = await this.#pool.connect();
    let broken = true;
    try {
      await client.query("begin");
      await client.query("insert into chaos_written values ($1, $2)", [ctx.id, ctx.runCount]);
      await ctx.complete(client);
      await client.query("commit");
      broken = false;
    } finally {
      // A connection that failed is not used again: its transaction ends with it.
      client.release(broken);
    }
  }
}

/** As `pg_stat_activity` shows whose connection it is; with several hosts the string is no URL. */
function named(url: string, name: string): string {
  return `${url}${url.includes("?") ? "&" : "?"}application_name=${name}`;
}
