import {
  type CompleteRequest,
  dateOf,
  type ExtendLeaseRequest,
  type ExtendLeaseResult,
  type HandBackRequest,
  readDatabaseFault,
  type Settlement,
  type SettleRequest,
  type SettleVerdict,
  toUuid,
  type UndoneClaim,
  VenturiError,
  type WorkerId,
} from "@venturi/core";
import type { Database, Row, SqlConnection } from "./database.ts";
import { type OnPutBack, tellPutBack } from "./old-place.ts";
import { inRounds } from "./rounds.ts";
import type { Statements } from "./statements.ts";
import { Verdicts } from "./verdicts.ts";

/**
 * Settles runs, extends their leases and hands claims back, in statements over arrays. What a statement did not apply
 * to is looked at again: first without the short cut of the lean statement, then without a lock, for a verdict.
 */
export class Settling {
  readonly #database: Database;
  readonly #statements: Statements;

  readonly #onPutBack: OnPutBack;

  constructor(database: Database, statements: Statements, onPutBack: OnPutBack) {
    this.#database = database;
    this.#statements = statements;
    this.#onPutBack = onPutBack;
  }

  async settle({ worker, settlements }: SettleRequest): Promise<readonly SettleVerdict[]> {
    const runCounts = plainRunCounts(settlements);
    if (runCounts.length === 0)
      return inRounds(settlements, (round) => this.#settleRound(worker, round));
    const open: number[] = [];
    for (const runCount of runCounts)
      open.push(...(await this.#complete(worker, runCount, settlements)));
    const verdicts = new Array<SettleVerdict>(settlements.length).fill("applied");
    if (open.length === 0) return verdicts;
    // Among them what somebody else has once locked, which the lean statement leaves alone.
    const left = open.map((place) => settlements[place] as Settlement);
    const found = await inRounds(left, (round) => this.#settleRound(worker, round));
    for (const [index, place] of open.entries()) verdicts[place] = found[index] ?? "lost";
    return verdicts;
  }

  /** Completes all of one run count; returns the places of those that it did not apply to. */
  async #complete(
    worker: WorkerId,
    runCount: number,
    settlements: readonly Settlement[],
  ): Promise<readonly number[]> {
    const places: number[] = [];
    const ids: string[] = [];
    for (let place = 0; place < settlements.length; place += 1) {
      const settlement = settlements[place] as Settlement;
      if (settlement.runCount !== runCount) continue;
      places.push(place);
      ids.push(toUuid(settlement.jobId));
    }
    const values = [worker, `{${ids.join(",")}}`, runCount, ids.length];
    const statement = this.#statements.settleCompleted;
    const [row] = await this.#database.run(statement, values, doing(settlements));
    if (row?.["applied"] === ids.length) return [];
    const applied = new Set(((row?.["job_ids"] ?? "") as string).split(" "));
    // Each once: a job that stands there twice has been completed once.
    return places.filter((_, index) => !applied.delete(ids[index] as string));
  }

  async #settleRound(
    worker: WorkerId,
    settlements: readonly Settlement[],
  ): Promise<readonly SettleVerdict[]> {
    if (settlements.length === 0) return [];
    const verdicts = new Verdicts(settlements.length);
    verdicts.apply(await tellPutBack(this.#settleAll(worker, settlements), this.#onPutBack));
    await this.#judge(
      worker,
      verdicts,
      settlements,
      (settlement) => outcomeCodes[settlement.outcome],
    );
    return verdicts.all;
  }

  handBack({ worker, claims }: HandBackRequest): Promise<readonly SettleVerdict[]> {
    return inRounds(claims, (round) => this.#handBackRound(worker, round));
  }

  async #handBackRound(
    worker: WorkerId,
    claims: readonly UndoneClaim[],
  ): Promise<readonly SettleVerdict[]> {
    if (claims.length === 0) return [];
    const verdicts = new Verdicts(claims.length);
    const values = [
      worker,
      claims.map(({ jobId }) => toUuid(jobId)),
      claims.map(({ runCount }) => runCount),
      claims.map(leaseEndsMs),
    ];
    const answer = this.#database.run(this.#statements.handBack, values, "hand claims back");
    const rows = await tellPutBack(answer, this.#onPutBack);
    verdicts.apply(rows);
    // A claim handed back leaves no entry, so no earlier call of this run can be found in the journal.
    await this.#judge(worker, verdicts, claims, () => null);
    return verdicts.all;
  }

  extendLease({ worker, extensions }: ExtendLeaseRequest): Promise<readonly ExtendLeaseResult[]> {
    return inRounds(extensions, (round) => this.#extendRound(worker, round));
  }

  async #extendRound(
    worker: WorkerId,
    extensions: ExtendLeaseRequest["extensions"],
  ): Promise<readonly ExtendLeaseResult[]> {
    if (extensions.length === 0) return [];
    const verdicts = new Verdicts(extensions.length);
    const values = [
      worker,
      extensions.map(({ jobId }) => toUuid(jobId)),
      extensions.map(({ runCount }) => runCount),
      extensions.map(({ leaseMs }) => leaseMs),
    ];
    const rows = await this.#database.run(this.#statements.extendLease, values, "extend leases");
    verdicts.apply(rows);
    await this.#judge(worker, verdicts, extensions, () => null);
    const applied = new Map(rows.map((row) => [(row["ord"] as number) - 1, row]));
    return verdicts.all.map((verdict, index): ExtendLeaseResult => {
      const row = applied.get(index);
      if (row === undefined) return { verdict: verdict === "busy" ? "busy" : "lost" };
      const leaseExpiresAt = dateOf(row["lease_expires_ms"] as number);
      return { verdict: "applied", leaseExpiresAt, leaseMs: row["lease_ms"] as number };
    });
  }

  /** In the caller's transaction; rejects with `claim-lost`, and what the driver throws comes out as it is. */
  async complete(connection: SqlConnection, request: CompleteRequest): Promise<void> {
    const { worker, jobId, runCount, note, attachment } = request;
    const values = [worker, toUuid(jobId), runCount, note, attachment];
    try {
      await connection.run(this.#statements.complete, values);
    } catch (error) {
      if (readDatabaseFault(error).sqlState !== claimLostState) throw error;
      throw new VenturiError(
        "claim-lost",
        `could not complete run ${runCount} of job ${jobId}: the claim is no longer held, so this transaction cannot commit; let it roll back`,
        { cause: error, id: jobId },
      );
    }
  }

  #settleAll(worker: WorkerId, settlements: readonly Settlement[]): Promise<readonly Row[]> {
    const values = [
      worker,
      settlements.map(({ jobId }) => toUuid(jobId)),
      settlements.map(({ runCount }) => runCount),
      settlements.map(({ outcome }) => outcomeCodes[outcome]),
      settlements.map(({ delayMs }) => delayMs),
      settlements.map(({ runAt }) => runAt),
      settlements.map(({ carry }) => carry),
      settlements.map(({ note }) => note),
      settlements.map(({ attachment }) => attachment),
      settlements.map(({ detail }) => detail),
    ];
    return this.#database.run(this.#statements.settle, values, doing(settlements));
  }

  async #judge<T extends UndoneClaim>(
    worker: WorkerId,
    verdicts: Verdicts,
    requests: readonly T[],
    code: (request: T) => string | null,
  ): Promise<void> {
    const open = verdicts.pick(requests);
    if (open.length === 0) return;
    const values = [
      worker,
      open.map(({ jobId }) => toUuid(jobId)),
      open.map(({ runCount }) => runCount),
      open.map(code),
      open.map(leaseEndsMs),
    ];
    const rows = await this.#database.run(
      this.#statements.verdicts,
      values,
      "look at runs that were not settled",
    );
    verdicts.judge(rows.map((row) => row["verdict"] as SettleVerdict));
  }
}

const outcomeCodes = {
  completed: "c",
  paused: "p",
  retried: "r",
  dead: "d",
  released: "l",
} as const;

/** Raised by the function that completes a run inside a caller's transaction. */
const claimLostState = "VT004";

function leaseEndsMs({ leaseExpiresAt }: UndoneClaim): number | null {
  return leaseExpiresAt?.getTime() ?? null;
}

/**
 * The run counts of completions that say nothing else, if they are so few that a lean statement for each is worth it:
 * one or two, since nearly all runs are first ones. None where there is anything else among them.
 */
function plainRunCounts(settlements: readonly Settlement[]): readonly number[] {
  const runCounts: number[] = [];
  for (const settlement of settlements) {
    if (!isPlainCompletion(settlement)) return [];
    if (runCounts.includes(settlement.runCount)) continue;
    if (runCounts.length === mostRunCounts) return [];
    runCounts.push(settlement.runCount);
  }
  return runCounts;
}

const mostRunCounts = 2;

function isPlainCompletion({ outcome, note, attachment, detail }: Settlement): boolean {
  return outcome === "completed" && note === null && attachment === null && detail === null;
}

function doing(settlements: readonly Settlement[]): string {
  return `settle ${settlements.length} run${settlements.length === 1 ? "" : "s"}`;
}
