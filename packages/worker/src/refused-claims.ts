import { type ClaimRef, type JobId, type Logger, readDatabaseFault } from "@venturi/core";
import { loggedIds } from "./logged-ids.ts";

/** For so many rounds, each at least a minute long, nobody is told of a claim again. */
const rememberedRounds = 3;

/** Claims that the store refuses to recover, one by one: they must not stop the others. */
export class RefusedClaims {
  readonly #logger: Logger;
  #claims = new Set<string>();
  /** Those that were forgotten of late, the latest first: of the same again nothing is said. */
  #before: readonly Set<string>[] = [];
  #untold: { readonly jobIds: JobId[]; readonly error: string } | null = null;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  get size(): number {
    return this.#claims.size;
  }

  has(claim: ClaimRef): boolean {
    return this.#claims.has(keyOf(claim));
  }

  add(claim: ClaimRef, error: unknown): void {
    const key = keyOf(claim);
    if (![this.#claims, ...this.#before].some((told) => told.has(key))) {
      this.#untold ??= { jobIds: [], error: readDatabaseFault(error).message };
      this.#untold.jobIds.push(claim.jobId);
    }
    this.#claims.add(key);
  }

  /** All are to be tried once more. */
  forget(): void {
    this.#before = [this.#claims, ...this.#before].slice(0, rememberedRounds);
    this.#claims = new Set();
  }

  /** Says in one record which have been added since, if any. */
  tell(): void {
    if (this.#untold === null) return;
    const { jobIds, error } = this.#untold;
    this.#untold = null;
    this.#logger.error("the store refuses to recover claims; the others are recovered", {
      claims: jobIds.length,
      jobIds: loggedIds(jobIds),
      error,
    });
  }
}

function keyOf({ jobId, runCount }: ClaimRef): string {
  return `${jobId} ${runCount}`;
}
