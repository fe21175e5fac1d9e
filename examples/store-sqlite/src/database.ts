import {
  FAR_FUTURE_MS,
  type JobId,
  type JournalOutcome,
  toDatabaseError,
  type WorkerId,
} from "@venturi/core";
import type BetterSqlite3 from "better-sqlite3";
import { schema } from "./schema.ts";

/** A row of `jobs`. */
export interface JobRow {
  readonly id: JobId;
  readonly kind: string;
  readonly dedup_key: string | null;
  readonly created_at: number;
  readonly payload: string;
  readonly headers: string | null;
  readonly state: "pending" | "claimed" | "completed" | "dead" | "cancelled";
  readonly tier: 0 | 1 | 2;
  readonly seq: number;
  readonly visible_at: number;
  readonly scheduled: 0 | 1;
  readonly lease_ms: number | null;
  readonly run_count: number;
  readonly failure_count: number;
  readonly version: number;
  readonly carry: string | null;
  readonly claimed_by: WorkerId | null;
  readonly claimed_at: number | null;
  readonly lease_expires_at: number | null;
  readonly backstop: number | null;
  readonly finished_at: number | null;
}

/** What an entry says beside the job that it is about. */
export interface EntryValues {
  readonly outcome: JournalOutcome;
  readonly runNo: number;
  readonly failureCount: number;
  readonly note?: string | null;
  readonly attachment?: string | null;
  readonly detail?: string | null;
  readonly worker?: WorkerId | null;
  readonly startedAt?: number | null;
  readonly incomingId?: JobId;
}

const maxSpanMs = 3e14;

/** The connection, the clock, and what all verbs share. */
export class Database {
  readonly #db: BetterSqlite3.Database;
  readonly #now: () => number;
  readonly #statements = new Map<string, BetterSqlite3.Statement>();

  constructor(db: BetterSqlite3.Database, now: () => number) {
    this.#db = db;
    this.#now = now;
    db.pragma("journal_mode = wal");
    db.pragma("busy_timeout = 5000");
    db.exec(schema);
  }

  now(): number {
    return this.#now();
  }

  /** The clock plus a span; a negative one is 0. */
  after(ms: number): number {
    return Math.min(this.now() + Math.min(Math.max(ms, 0), maxSpanMs), FAR_FUTURE_MS);
  }

  /** An absolute time, now if it has passed. */
  at(epochMs: number): number {
    return Math.min(Math.max(Math.trunc(epochMs), this.now()), FAR_FUTURE_MS);
  }

  /**
   * One transaction that holds the write lock from its first statement, so that what it reads is what it changes,
   * whichever process asks. Others wait for it.
   */
  write<T>(doing: string, work: () => T): T {
    return this.#guarded(doing, () => this.#db.transaction(work).immediate());
  }

  /** One snapshot. */
  read<T>(doing: string, work: () => T): T {
    return this.#guarded(doing, () => this.#db.transaction(work).deferred());
  }

  #guarded<T>(doing: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw toDatabaseError(error, { doing, prefix: "" });
    }
  }

  all<Row>(sql: string, ...values: readonly unknown[]): readonly Row[] {
    return this.#statement(sql).all(...values) as Row[];
  }

  get<Row>(sql: string, ...values: readonly unknown[]): Row | undefined {
    return this.#statement(sql).get(...values) as Row | undefined;
  }

  /** How many rows it changed. */
  run(sql: string, ...values: readonly unknown[]): number {
    return this.#statement(sql).run(...values).changes;
  }

  #statement(sql: string): BetterSqlite3.Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /** A place at the end of the order of arrival. */
  nextSeq(): number {
    const row = this.get<{ n: number }>("update arrivals set n = n + 1 returning n");
    return row?.n ?? 0;
  }

  log({ id, kind }: Pick<JobRow, "id" | "kind">, entry: EntryValues): void {
    this.run(
      `insert into journal (job_id, kind, run_no, failure_count, outcome, note, attachment, detail, worker, started_at, recorded_at, incoming_id)
      values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      id,
      kind,
      entry.runNo,
      entry.failureCount,
      entry.outcome,
      entry.note ?? null,
      entry.attachment ?? null,
      entry.detail ?? null,
      entry.worker ?? null,
      entry.startedAt ?? null,
      this.now(),
      entry.incomingId ?? null,
    );
  }

  job(id: JobId): JobRow | undefined {
    return this.get<JobRow>("select * from jobs where id = ?", id);
  }

  /** The claimed job that a worker holds with this run. */
  held(worker: WorkerId, jobId: JobId, runCount: number): JobRow | undefined {
    return this.get<JobRow>(
      "select * from jobs where id = ? and state = 'claimed' and claimed_by = ? and run_count = ?",
      jobId,
      worker,
      runCount,
    );
  }
}
