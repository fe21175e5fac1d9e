import pg from "pg";
import * as v from "valibot";
import { claimSql, settleSql } from "./limit-sql.ts";

interface ClaimedRow {
  readonly id: string;
  readonly seq: number;
  readonly run: number;
  readonly payload: string;
}

export interface LoopOptions {
  readonly url: string;
  readonly concurrency: number;
  readonly prefetch: number;
  readonly handle: (id: number) => void | Promise<void>;
}

const schema = v.object({ id: v.number(), pad: v.string() });
const mostPerClaim = 500;

/**
 * The bare loop: at most one claim and one settlement under way, each on a connection of its own; while one runs,
 * slots free and results pile up, and the next statement takes them all. It validates payloads, writes a journal and
 * gives each job a context, and does nothing else: no retries, recovery, caps, priorities or heartbeats.
 */
export class LimitLoop {
  readonly #options: LoopOptions;
  readonly #claims: pg.Client;
  readonly #settlements: pg.Client;
  readonly #listener: pg.Client;
  readonly #worker = Math.floor(Math.random() * 2 ** 31);
  #buffer: ClaimedRow[] = [];
  #head = 0;
  #running = 0;
  #mark = 0;
  #isClaiming = false;
  #isDry = false;
  #wasWoken = false;
  #isStopping = false;
  #ids: string[] = [];
  #runs: number[] = [];
  #settling: Promise<void> | null = null;
  #idle: () => void = () => undefined;

  constructor(options: LoopOptions) {
    this.#options = options;
    this.#claims = new pg.Client(options.url);
    this.#settlements = new pg.Client(options.url);
    this.#listener = new pg.Client(options.url);
  }

  async start(): Promise<void> {
    await Promise.all([this.#claims, this.#settlements, this.#listener].map((c) => c.connect()));
    this.#listener.on("notification", () => {
      this.#wasWoken = true;
      this.#isDry = false;
      this.#pump();
    });
    await this.#listener.query("listen bench_limit");
    this.#pump();
  }

  /** Resolves when everything that was claimed has run and is written down. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
      this.#checkIdle();
    });
    await Promise.all([this.#claims, this.#settlements, this.#listener].map((c) => c.end()));
  }

  #checkIdle(): void {
    const isBusy = this.#running > 0 || this.#isClaiming || this.#settling !== null;
    if (this.#isStopping && !isBusy && this.#head === this.#buffer.length) this.#idle();
  }

  #pump(): void {
    while (this.#running < this.#options.concurrency && this.#head < this.#buffer.length) {
      const row = this.#buffer[this.#head] as ClaimedRow;
      this.#head += 1;
      this.#running += 1;
      void this.#run(row);
    }
    if (this.#head > 4_096) {
      this.#buffer = this.#buffer.slice(this.#head);
      this.#head = 0;
    }
    this.#claimMore();
  }

  async #run(row: ClaimedRow): Promise<void> {
    const { output } = v.safeParse(schema, JSON.parse(row.payload));
    await this.#options.handle((output as { id: number }).id);
    this.#running -= 1;
    this.#ids.push(row.id);
    this.#runs.push(row.run);
    this.#settling ??= new Promise((resolve) => setImmediate(resolve)).then(() => this.#settle());
    this.#pump();
  }

  #claimMore(): void {
    if (this.#isClaiming || this.#isDry || this.#isStopping) return;
    const { concurrency, prefetch } = this.#options;
    const waiting = this.#buffer.length - this.#head;
    const want = Math.min(mostPerClaim, concurrency - this.#running + prefetch - waiting);
    // Half empty, or, where nothing is claimed ahead, as soon as a slot is free.
    if (want < Math.max(1, Math.min(mostPerClaim, prefetch / 2))) return;
    this.#isClaiming = true;
    void this.#claim(want);
  }

  async #claim(want: number): Promise<void> {
    this.#wasWoken = false;
    const { rows } = await this.#claims.query<ClaimedRow>({
      name: "claim",
      text: claimSql,
      values: [want, this.#worker, this.#mark],
    });
    this.#isClaiming = false;
    const last = rows.at(-1);
    if (last !== undefined) {
      this.#mark = last.seq;
      for (const row of rows) this.#buffer.push(row);
    } else if (this.#mark > 0) {
      this.#mark = 0;
    } else {
      this.#isDry = !this.#wasWoken;
    }
    this.#pump();
    this.#checkIdle();
  }

  async #settle(): Promise<void> {
    while (this.#ids.length > 0) {
      const values = [this.#ids, this.#runs, this.#worker];
      this.#ids = [];
      this.#runs = [];
      await this.#settlements.query({ name: "settle", text: settleSql, values });
    }
    this.#settling = null;
    this.#checkIdle();
  }
}
