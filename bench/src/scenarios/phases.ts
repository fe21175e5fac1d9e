import { setTimeout as sleep } from "node:timers/promises";
import type { Site } from "../context.ts";
import { now } from "../process/clock.ts";
import type { Crew } from "./crew.ts";

/** A stretch of time under one condition, with what stood in the tables at its end. */
export interface Phase {
  readonly name: string;
  readonly perSecond: number;
  readonly deadTuples: number;
  /** Jobs waiting or running. */
  readonly backlog: number;
}

interface Stretch {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly deadTuples: number;
  readonly backlog: number;
}

/** Runs phases one after another; rates are worked out when the workers have said what they handled when. */
export class Phases {
  readonly #site: Site;
  readonly #crew: Crew;
  readonly #backlogSql: string;
  /** Dead rows that making the tables has left. */
  readonly #deadBefore: number;
  readonly #stretches: Stretch[] = [];

  private constructor(site: Site, crew: Crew, backlogSql: string, deadBefore: number) {
    this.#site = site;
    this.#crew = crew;
    this.#backlogSql = backlogSql;
    this.#deadBefore = deadBefore;
  }

  static async begin(site: Site, crew: Crew, backlogSql: string): Promise<Phases> {
    const { deadTuples } = await site.meter.tables();
    return new Phases(site, crew, backlogSql, deadTuples);
  }

  async run(name: string, ms: number): Promise<void> {
    const from = now();
    await sleep(ms);
    await this.#end(name, from);
  }

  /** A phase that lasts until so many jobs have been handled in all; false when it took too long. */
  async runUntil(name: string, handled: number, mostMs: number): Promise<boolean> {
    const from = now();
    const isDone = await this.#crew.until(handled, mostMs);
    await this.#end(name, from);
    return isDone;
  }

  async #end(name: string, from: number): Promise<void> {
    const to = now();
    const { deadTuples } = await this.#site.meter.tables();
    const backlog = await this.#site.meter.number(this.#backlogSql);
    const added = Math.max(0, deadTuples - this.#deadBefore);
    this.#stretches.push({ name, from, to, deadTuples: added, backlog });
  }

  duration(name: string): number {
    const stretch = this.#stretches.find((known) => known.name === name);
    return stretch === undefined ? Number.NaN : stretch.to - stretch.from;
  }

  results(times: Float64Array): Phase[] {
    return this.#stretches.map(({ name, from, to, deadTuples, backlog }) => {
      let jobs = 0;
      for (const time of times) if (time >= from && time < to) jobs += 1;
      return { name, perSecond: jobs / ((to - from) / 1_000), deadTuples, backlog };
    });
  }
}
