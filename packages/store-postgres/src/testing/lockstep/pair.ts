import assert from "node:assert/strict";
import { isVenturiError, type Store, type WorkerId } from "@venturi/core";
import { ManualClock, MemoryStore } from "@venturi/testing";
import type pg from "pg";
import { PostgresStore } from "../../postgres-store.ts";
import type { SqlClock } from "../sql-clock.ts";

/** One worker as each of the two stores knows it. */
export interface PairedWorker {
  readonly memory: WorkerId;
  readonly postgres: WorkerId;
}

type AnyStore = Pick<Store, Exclude<keyof Store, "within" | "complete" | "~tx">>;

/** A call on one of the stores, which names workers by their place. */
export type Call<T> = (store: AnyStore, worker: (place: number) => WorkerId) => Promise<T>;

/** The two stores on one clock. Every call is made on both, and both must answer alike. */
export class Pair {
  readonly workers: PairedWorker[] = [];
  readonly #clock: ManualClock;
  readonly #memory: MemoryStore;
  readonly #pool: pg.Pool;
  readonly #sqlClock: SqlClock;
  #postgres: PostgresStore;

  constructor(pool: pg.Pool, sqlClock: SqlClock, now: number) {
    this.#pool = pool;
    this.#sqlClock = sqlClock;
    this.#clock = new ManualClock(new Date(now));
    this.#memory = new MemoryStore({ clock: this.#clock });
    this.#postgres = new PostgresStore({ pool });
  }

  now(): number {
    return this.#clock.now();
  }

  async advance(ms: number): Promise<void> {
    this.#clock.advance(ms);
    await this.#sqlClock.advance(ms);
  }

  /**
   * Forgets the PostgreSQL store's marks, which are measured by real time and may put re-pended jobs off for a moment:
   * they have tests of their own.
   */
  forgetMarks(): void {
    this.#postgres = new PostgresStore({ pool: this.#pool });
  }

  async startWorker(call: (store: AnyStore) => Promise<{ worker: WorkerId }>): Promise<void> {
    const [memory, postgres] = [await call(this.#memory), await call(this.#postgres)];
    this.workers.push({ memory: memory.worker, postgres: postgres.worker });
  }

  /** Makes a call on both stores; throws where the answers, as `view` shows them, or the errors differ. */
  async both<T>(name: string, call: Call<T>, view: (answer: T) => unknown): Promise<T | null> {
    const memory = await outcome(() => call(this.#memory, (place) => this.#worker(place).memory));
    const postgres = await outcome(() =>
      call(this.#postgres, (place) => this.#worker(place).postgres),
    );
    const show = (side: Outcome<T>, ids: (worker: PairedWorker) => WorkerId) =>
      "error" in side
        ? { error: side.error }
        : plain(view(side.answer), (id) => this.workers.findIndex((worker) => ids(worker) === id));
    assert.deepStrictEqual(
      show(postgres, (worker) => worker.postgres),
      show(memory, (worker) => worker.memory),
      `${name} differs between PostgreSQL (actual) and memory (expected)`,
    );
    return "answer" in memory ? memory.answer : null;
  }

  #worker(place: number): PairedWorker {
    const worker = this.workers[place % this.workers.length];
    assert(worker, "a scenario begins with a worker");
    return worker;
  }

  /** The place of a worker in the pair, from the number that the store in memory knows it by. */
  placeOf(memory: WorkerId): number {
    return this.workers.findIndex((worker) => worker.memory === memory);
  }
}

type Outcome<T> = { readonly answer: T } | { readonly error: unknown };

async function outcome<T>(call: () => Promise<T>): Promise<Outcome<T>> {
  try {
    return { answer: await call() };
  } catch (error) {
    if (!isVenturiError(error) || error.code === "database") throw error;
    return { error: { code: error.code, isRetryable: error.isRetryable, ids: error.ids } };
  }
}

const jsonTexts = new Set(["payload", "carry"]);
const workerIds = new Set(["worker", "holder"]);

/** Data alone: instants as text, workers by their place, JSON text without the spaces that stores may write. */
function plain(value: unknown, place: (id: WorkerId) => number): unknown {
  const text = JSON.stringify(value, (name, member: unknown) => {
    if (workerIds.has(name) && typeof member === "number") return place(member);
    return jsonTexts.has(name) ? jsonOf(member) : member;
  });
  return text === undefined ? undefined : JSON.parse(text);
}

/** Of JSON text, or of a value that has been read from some, the JSON without spaces; the order of names stays. */
function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(typeof value === "string" ? JSON.parse(value) : value);
  } catch {
    return JSON.stringify(value);
  }
}
