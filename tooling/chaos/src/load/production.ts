import { setTimeout as sleep } from "node:timers/promises";
import { createJobIds, isVenturiError, type JobId, type UnsentJob } from "@venturi/core";
import { Queue } from "@venturi/queue";
import pg from "pg";
import type { ProducerReport, ProducerSetup } from "../process/protocol.ts";
import { seededRandom } from "../random.ts";
import { Diary } from "./diary.ts";
import { drawJob } from "./mixture.ts";

const tickMs = 20;
const batchSize = 1_000;
const firstRepeatMs = 50;
const longestRepeatMs = 500;

/** A job with the options of its enqueue. */
interface DrawnJob {
  readonly job: UnsentJob;
  readonly id: JobId;
  readonly delay?: number;
  readonly priority?: "high" | "low";
}

/** A producer that gives every job an id and repeats each enqueue until it knows what became of it. */
export class Production {
  readonly #setup: ProducerSetup;
  readonly #queue: Queue;
  readonly #pool: pg.Pool;
  readonly #diary: Diary;
  readonly #random: () => number;
  readonly #nextId = createJobIds({ now: Date.now, random: Math.random });
  readonly #underWay = new Set<Promise<void>>();
  readonly #failures: string[] = [];
  #accepted = 0;
  #merged = 0;
  #ending: AbortController | undefined;

  constructor(setup: ProducerSetup) {
    this.#setup = setup;
    const { url, preparedStatements, file, seed } = setup;
    this.#pool = new pg.Pool({
      connectionString: url,
      max: 4,
      // What an application that wants to hear of a lost network sets.
      query_timeout: 5_000,
      connectionTimeoutMillis: 5_000,
    });
    this.#queue = new Queue(this.#pool, { preparedStatements });
    this.#diary = new Diary(file);
    this.#random = seededRandom(seed);
  }

  async fill(count: number): Promise<void> {
    for (let left = count; left > 0; left -= batchSize)
      await this.#enqueue(this.#draw(Math.min(left, batchSize)));
  }

  produce(perSecond: number): void {
    const ending = new AbortController();
    this.#ending?.abort();
    this.#ending = ending;
    const startedAt = performance.now();
    let made = 0;
    const timer = setInterval(() => {
      const due = Math.floor(((performance.now() - startedAt) / 1_000) * perSecond) - made;
      made += due;
      // Now and then a batch, else one by one.
      if (due > 0 && this.#random() < 0.2) this.#follow(this.#enqueue(this.#draw(due)));
      else for (const item of this.#draw(due)) this.#follow(this.#enqueue([item]));
    }, tickMs);
    ending.signal.addEventListener("abort", () => clearInterval(timer));
  }

  async end(): Promise<ProducerReport> {
    this.#ending?.abort();
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
    await this.#pool.end();
    return { accepted: this.#accepted, merged: this.#merged, failures: this.#failures };
  }

  #draw(count: number): DrawnJob[] {
    return Array.from({ length: count }, () => {
      const job = drawJob(this.#random, this.#setup.meanMs);
      const id = this.#nextId();
      this.#diary.tried([id], job.kind);
      const chance = this.#random();
      if (chance < 0.05) return { job, id, delay: 200 };
      if (chance < 0.15) return { job, id, priority: "high" };
      return chance < 0.25 ? { job, id, priority: "low" } : { job, id };
    });
  }

  #follow(work: Promise<void>): void {
    this.#underWay.add(work);
    void work.finally(() => this.#underWay.delete(work));
  }

  async #enqueue(items: readonly DrawnJob[]): Promise<void> {
    for (let waitMs = firstRepeatMs; ; waitMs = Math.min(2 * waitMs, longestRepeatMs)) {
      try {
        const [only, ...others] = items;
        if (only === undefined) return;
        const { job, ...options } = only;
        const surviving =
          others.length > 0
            ? await this.#queue.enqueueMany(items)
            : [await this.#queue.enqueue(job, options)];
        this.#diary.accepted(items.map(({ id }) => id));
        this.#accepted += items.length;
        this.#merged += items.filter(({ id }, index) => surviving[index] !== id).length;
        return;
      } catch (error) {
        if (!isVenturiError(error) || !error.isRetryable) {
          this.#failures.push(String(error));
          return;
        }
      }
      await sleep(waitMs * (0.5 + Math.random() / 2));
    }
  }
}
