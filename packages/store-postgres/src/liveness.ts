import {
  type BeatResult,
  type FindStaleRequest,
  type RecoverRequest,
  type Recovery,
  type Signalled,
  type StaleClaim,
  toUuid,
  type WorkerId,
  type WorkerRegistration,
} from "@venturi/core";
import type { Database } from "./database.ts";
import { type OnPutBack, tellPutBack } from "./old-place.ts";
import { inRounds } from "./rounds.ts";
import { toStaleClaim } from "./row-mapping.ts";
import type { Statements } from "./statements.ts";
import { firstPatienceMs } from "./suspect-connections.ts";

/** Which release of the SQL contract this code speaks; published with each worker. */
const codeVersion = 1;

/** No beat is given up sooner, in milliseconds: a server that is there may be that slow for a moment. */
const leastPatienceMs = 500;

/** Worker sessions, their beats, and what becomes of the claims of those that have gone silent. */
export class Liveness {
  readonly #database: Database;
  readonly #statements: Statements;
  readonly #onPutBack: OnPutBack;
  /** Beats under way, also those that nobody waits for: one that came after its session's end would open it again. */
  readonly #beats = new Map<WorkerId, Promise<unknown>>();

  constructor(database: Database, statements: Statements, onPutBack: OnPutBack) {
    this.#database = database;
    this.#statements = statements;
    this.#onPutBack = onPutBack;
  }

  async startWorker(request: WorkerRegistration & Signalled): Promise<WorkerId> {
    const values = registration(request);
    const [row] = await this.#database.run(this.#statements.startWorker, values, "start a worker");
    const worker = row?.["id"] as number;
    // Whoever asked no longer waits, and will never know of it.
    if (request.signal?.aborted) await this.stopWorker(worker);
    return worker;
  }

  async stopWorker(worker: WorkerId): Promise<void> {
    await this.#beats.get(worker)?.catch(() => undefined);
    await this.#database.run(this.#statements.stopWorker, [worker], "stop a worker");
  }

  async beat(request: WorkerRegistration & { readonly worker: WorkerId }): Promise<BeatResult> {
    const values = [request.worker, ...registration(request)];
    // One that waited for longer would be heard of too late, though the next connection works.
    const patienceMs = Math.min(
      firstPatienceMs,
      Math.max(leastPatienceMs, request.workerTimeoutMs / 3),
    );
    const statement = { ...this.#statements.beat, patienceMs };
    const rows = await this.#beating(request.worker, this.#database.run(statement, values, "beat"));
    const [first] = rows;
    const silent = rows.flatMap((row) =>
      row["id"] === null
        ? []
        : [
            {
              worker: row["id"] as number,
              name: row["name"] as string,
              silentMs: row["silent_ms"] as number,
              timeoutMs: row["timeout_ms"] as number,
              dead: row["dead"] === 1,
            },
          ],
    );
    return {
      silent,
      nextSuspectMs: (first?.["next_suspect_ms"] ?? null) as number | null,
      others: first?.["others"] as number,
      serverUpMs: first?.["server_up_ms"] as number,
      clockMs: first?.["clock_ms"] as number,
    };
  }

  async #beating<T>(worker: WorkerId, beat: Promise<T>): Promise<T> {
    this.#beats.set(worker, beat);
    try {
      return await beat;
    } finally {
      if (this.#beats.get(worker) === beat) this.#beats.delete(worker);
    }
  }

  async findStale({ holders, orphans, limit }: FindStaleRequest): Promise<readonly StaleClaim[]> {
    if (holders.length === 0 && !orphans) return [];
    const all = holders.filter(({ overdueOnly }) => !overdueOnly).map(({ worker }) => worker);
    const rows = await this.#database.run(
      orphans ? this.#statements.findOrphans : this.#statements.findStale,
      [holders.map(({ worker }) => worker), all, limit],
      "look for stale claims",
    );
    const claims = rows.map(toStaleClaim);
    const done = all.filter((worker) => !claims.some(({ holder }) => holder === worker));
    if (done.length > 0 && claims.length < limit) {
      await this.#database.run(this.#statements.giveUpWorkers, [done], "give up dead workers");
    }
    return claims;
  }

  recover({ recoveries }: RecoverRequest): Promise<readonly boolean[]> {
    return inRounds(recoveries, (round) => this.#recoverRound(round));
  }

  async #recoverRound(recoveries: readonly Recovery[]): Promise<readonly boolean[]> {
    if (recoveries.length === 0) return [];
    const answer = this.#database.run(
      this.#statements.recover,
      [
        recoveries.map(({ jobId }) => toUuid(jobId)),
        recoveries.map(({ runCount }) => runCount),
        recoveries.map(({ holder }) => holder),
        recoveries.map(({ outcome }) => (outcome === "dead" ? "d" : "s")),
        recoveries.map(({ delayMs }) => delayMs),
        recoveries.map(({ note }) => note),
      ],
      "recover stale claims",
    );
    const rows = await tellPutBack(answer, this.#onPutBack);
    const applied = new Array<boolean>(recoveries.length).fill(false);
    for (const row of rows) applied[(row["ord"] as number) - 1] = true;
    return applied;
  }
}

function registration({
  name,
  kinds,
  pollMaxMs,
  workerTimeoutMs,
  shortestLeaseMs,
}: WorkerRegistration): readonly unknown[] {
  const finite = (ms: number) => Math.min(ms, 1e15);
  return [
    name,
    [...kinds],
    finite(pollMaxMs),
    finite(workerTimeoutMs),
    finite(shortestLeaseMs),
    codeVersion,
  ];
}
