import type { ClaimRequest } from "@venturi/core";
import {
  type CleanupRequest,
  type EnqueueRequest,
  type ExtendLeaseRequest,
  type FindCandidatesRequest,
  type FindStaleRequest,
  type HandBackRequest,
  type JobQuery,
  type JobRequest,
  PORT_VERSION,
  type ReadJournalRequest,
  type RecoverRequest,
  type SettleRequest,
  type Signalled,
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

  async enqueue(request: EnqueueRequest) {
    return {
      jobs: this.#write(request, "enqueue", (database) => enqueue(database, request.jobs)),
    };
  }

  async findCandidates(request: FindCandidatesRequest) {
    const candidates = this.#read(request, "read what may be merged with", (database) =>
      request.keys.map((key) => findCandidates(database, key)),
    );
    return { candidates };
  }

  // ── working ────────────────────────────────────────────────────────────────────────────────────────────────────

  async startWorker(request: WorkerRegistration & Signalled) {
    const doing = "start a worker";
    return { worker: this.#write(request, doing, (database) => startWorker(database, request)) };
  }

  async stopWorker(request: { readonly worker: WorkerId } & Signalled) {
    this.#write(request, "stop a worker", (database) => stopWorker(database, request.worker));
  }

  async claim(request: ClaimRequest) {
    return this.#write(request, "claim jobs", (database) => claim(database, request));
  }

  async settle(request: SettleRequest) {
    const { worker, settlements } = request;
    const verdicts = this.#write(request, "settle runs", (database) =>
      settlements.map((settlement) => settle(database, worker, settlement)),
    );
    return { verdicts };
  }

  async handBack(request: HandBackRequest) {
    const { worker, claims } = request;
    const verdicts = this.#write(request, "hand claims back", (database) =>
      claims.map((ref) => handBack(database, worker, ref)),
    );
    return { verdicts };
  }

  async extendLease(request: ExtendLeaseRequest) {
    const { worker, extensions } = request;
    const results = this.#write(request, "extend leases", (database) =>
      extensions.map((extension) => extendLease(database, worker, extension)),
    );
    return { results };
  }

  async beat(request: WorkerRegistration & { readonly worker: WorkerId } & Signalled) {
    const answer = this.#write(request, "beat", (database) =>
      beat(database, request.worker, request),
    );
    // A file has no server that could have been away: it is there for as long as this process uses it.
    return { ...answer, serverUpMs: this.#database.now() - this.#startedAt };
  }

  async findStale(request: FindStaleRequest) {
    const doing = "look for stale claims";
    return { claims: this.#write(request, doing, (database) => findStale(database, request)) };
  }

  async recover(request: RecoverRequest) {
    const applied = this.#write(request, "recover stale claims", (database) =>
      request.recoveries.map((recovery) => recover(database, recovery)),
    );
    return { applied };
  }

  // ── operating ──────────────────────────────────────────────────────────────────────────────────────────────────

  async findJob(request: JobRequest) {
    const job = this.#read(request, "read a job", (database) => {
      const row = database.job(request.id);
      return row === undefined ? null : toJobRecord(database, row);
    });
    return { job };
  }

  async queryJobs(query: JobQuery) {
    return { jobs: this.#read(query, "read jobs", (database) => queryJobs(database, query)) };
  }

  async readJournal(request: ReadJournalRequest) {
    const { jobId, limit } = request;
    const doing = "read the journal";
    return {
      entries: this.#read(request, doing, (database) => readEntries(database, jobId, limit)),
    };
  }

  async stats(request: Signalled) {
    return { stats: this.#read(request, "read stats", stats) };
  }

  async cleanup(request: CleanupRequest) {
    let deleted = 0;
    let batch = -1;
    while (batch !== 0) {
      batch = this.#write(request, "clean up", (database) => cleanupBatch(database, request));
      deleted += batch;
    }
    if (request.kind === null)
      this.#write(request, "clean up workers", (database) =>
        cleanupWorkers(database, request.finishedBefore),
      );
    return { deleted };
  }

  async retry(request: JobRequest) {
    const { id } = request;
    return { applied: this.#write(request, "retry a job", (database) => retry(database, id)) };
  }

  async cancel(request: JobRequest) {
    const { id } = request;
    return { applied: this.#write(request, "cancel a job", (database) => cancel(database, id)) };
  }

  #write<T>({ signal }: Signalled, doing: string, work: (database: Database) => T): T {
    signal?.throwIfAborted();
    return this.#database.write(doing, () => work(this.#database));
  }

  #read<T>({ signal }: Signalled, doing: string, work: (database: Database) => T): T {
    signal?.throwIfAborted();
    return this.#database.read(doing, () => work(this.#database));
  }
}
