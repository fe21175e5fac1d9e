import type { ClaimRequest } from "@venturi/core";
import {
  type CleanupRequest,
  type EnqueueRequest,
  type ExtendLeaseRequest,
  type FindCandidatesRequest,
  type FindStaleRequest,
  type HandBackRequest,
  type JobId,
  type JobQuery,
  type JobRequest,
  PORT_VERSION,
  type ReadJournalRequest,
  type RecoverRequest,
  type SettleRequest,
  type Store,
  type WorkerId,
  type WorkerRegistration,
} from "@venturi/core";
import type BetterSqlite3 from "better-sqlite3";
import { claim } from "./claiming.ts";
import { Database } from "./database.ts";
import { beat, findStale, startWorker, stopWorker } from "./liveness.ts";
import { cancel, cleanupBatch, cleanupWorkers, queryJobs, retry, stats } from "./operating.ts";
import { enqueue, findCandidates } from "./producing.ts";
import { readEntries, toJobRecord } from "./records.ts";
import { extendLease, handBack, recover, settle } from "./settling.ts";

export interface SqliteStoreOptions {
  /** Epoch milliseconds; the system's clock unless given. */
  readonly now?: () => number;
}

interface Signalled {
  readonly signal?: AbortSignal | undefined;
}

/**
 * A store in one SQLite file, which processes of one machine may share. It has no transactions to take part in (the
 * driver's cannot wait for anything) and sends no notifications: workers poll.
 */
export class SqliteStore implements Store {
  readonly portVersion = PORT_VERSION;
  readonly capabilities = { transactions: false, notifications: false };
  readonly #database: Database;
  readonly #startedAt: number;

  /** Borrows a connection of `better-sqlite3`, and makes the tables that are missing. */
  constructor(db: BetterSqlite3.Database, { now = Date.now }: SqliteStoreOptions = {}) {
    this.#database = new Database(db, now);
    this.#startedAt = now();
  }

  // ── producing ──────────────────────────────────────────────────────────────────────────────────────────────────

  async enqueue({ jobs, signal }: EnqueueRequest) {
    signal?.throwIfAborted();
    return { jobs: this.#write("enqueue", (database) => enqueue(database, jobs)) };
  }

  async findCandidates({ keys, signal }: FindCandidatesRequest) {
    signal?.throwIfAborted();
    const candidates = this.#read("read what may be merged with", (database) =>
      keys.map((key) => findCandidates(database, key)),
    );
    return { candidates };
  }

  // ── working ────────────────────────────────────────────────────────────────────────────────────────────────────

  async startWorker(request: WorkerRegistration) {
    return { worker: this.#write("start a worker", (database) => startWorker(database, request)) };
  }

  async stopWorker({ worker }: { readonly worker: WorkerId }) {
    this.#write("stop a worker", (database) => stopWorker(database, worker));
  }

  async claim(request: ClaimRequest) {
    return this.#write("claim jobs", (database) => claim(database, request));
  }

  async settle({ worker, settlements }: SettleRequest) {
    const verdicts = this.#write("settle runs", (database) =>
      settlements.map((settlement) => settle(database, worker, settlement)),
    );
    return { verdicts };
  }

  async handBack({ worker, claims }: HandBackRequest) {
    const verdicts = this.#write("hand claims back", (database) =>
      claims.map((ref) => handBack(database, worker, ref)),
    );
    return { verdicts };
  }

  async extendLease({ worker, extensions }: ExtendLeaseRequest) {
    const results = this.#write("extend leases", (database) =>
      extensions.map((extension) => extendLease(database, worker, extension)),
    );
    return { results };
  }

  async beat(request: WorkerRegistration & { readonly worker: WorkerId }) {
    const answer = this.#write("beat", (database) => beat(database, request.worker, request));
    // A file has no server that could have been away: it is there for as long as this process uses it.
    return { ...answer, serverUpMs: this.#database.now() - this.#startedAt };
  }

  async findStale(request: FindStaleRequest) {
    const doing = "look for stale claims";
    return { claims: this.#write(doing, (database) => findStale(database, request)) };
  }

  async recover({ recoveries }: RecoverRequest) {
    const applied = this.#write("recover stale claims", (database) =>
      recoveries.map((recovery) => recover(database, recovery)),
    );
    return { applied };
  }

  // ── operating ──────────────────────────────────────────────────────────────────────────────────────────────────

  async findJob({ id, signal }: { readonly id: JobId } & Signalled) {
    signal?.throwIfAborted();
    const job = this.#read("read a job", (database) => {
      const row = database.job(id);
      return row === undefined ? null : toJobRecord(database, row);
    });
    return { job };
  }

  async queryJobs(query: JobQuery) {
    query.signal?.throwIfAborted();
    return { jobs: this.#read("read jobs", (database) => queryJobs(database, query)) };
  }

  async readJournal({ jobId, limit, signal }: ReadJournalRequest) {
    signal?.throwIfAborted();
    const doing = "read the journal";
    return { entries: this.#read(doing, (database) => readEntries(database, jobId, limit)) };
  }

  async stats({ signal }: Signalled) {
    signal?.throwIfAborted();
    return { stats: this.#read("read stats", stats) };
  }

  async cleanup(request: CleanupRequest) {
    let deleted = 0;
    let batch = -1;
    while (batch !== 0) {
      request.signal?.throwIfAborted();
      batch = this.#write("clean up", (database) => cleanupBatch(database, request));
      deleted += batch;
    }
    if (request.kind === null)
      this.#write("clean up workers", (database) =>
        cleanupWorkers(database, request.finishedBefore),
      );
    return { deleted };
  }

  async retry({ id }: JobRequest) {
    return { applied: this.#write("retry a job", (database) => retry(database, id)) };
  }

  async cancel({ id }: JobRequest) {
    return { applied: this.#write("cancel a job", (database) => cancel(database, id)) };
  }

  #write<T>(doing: string, work: (database: Database) => T): T {
    return this.#database.write(doing, () => work(this.#database));
  }

  #read<T>(doing: string, work: (database: Database) => T): T {
    return this.#database.read(doing, () => work(this.#database));
  }
}
