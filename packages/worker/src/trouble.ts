import { isVenturiError, type Logger, readDatabaseFault } from "@venturi/core";
import type { Clock } from "./clock.ts";
import { GrowingDelay } from "./growing-delay.ts";

/** The same trouble is logged once in this time, however often it occurs. */
const logWindowMs = 60_000;

/** Waits between tries of a call that fails, in milliseconds. */
const firstDelayMs = 250;
const longestDelayMs = 4_000;

export interface TroubleOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** What fails, as in "could not … ". */
  readonly doing: string;
  /**
   * The longest wait between tries, in milliseconds.
   * @defaultValue 4,000
   */
  readonly mostMs?: number;
  readonly random?: () => number;
}

/** Follows one call that is repeated until it succeeds: how long to wait, and what to log without flooding the log. */
export class Trouble {
  readonly #options: TroubleOptions;
  readonly #delay: GrowingDelay;
  #logged = "";
  #loggedAt = Number.NEGATIVE_INFINITY;
  #unlogged = 0;
  /** An operator was told of it, and not yet that it is over. */
  #isNews = false;

  constructor(options: TroubleOptions) {
    this.#options = options;
    const mostMs = Math.max(
      firstDelayMs,
      Math.min(options.mostMs ?? longestDelayMs, longestDelayMs),
    );
    this.#delay = new GrowingDelay({ firstMs: firstDelayMs, mostMs, jitter: true }, options.random);
  }

  /** Notes a failure; returns how long to wait before the next try, in milliseconds. */
  failed(error: unknown): number {
    const { clock, logger, doing } = this.#options;
    const fault = readDatabaseFault(error);
    const identity = `${fault.sqlState ?? ""} ${whatWasSaid(error)}`;
    const now = clock.now();
    if (identity === this.#logged && now - this.#loggedAt < logWindowMs) {
      this.#unlogged += 1;
    } else {
      // The error object stays out of the log: drivers hang connection parameters on theirs.
      const fields = {
        error: fault.message,
        sqlState: fault.sqlState,
        retryable: isRetryable(error),
        ...(this.#unlogged > 0 ? { unlogged: this.#unlogged } : {}),
      };
      logger.warn(`could not ${doing}, trying again`, fields);
      this.#logged = identity;
      this.#loggedAt = now;
      this.#isNews = true;
      this.#unlogged = 0;
    }
    return this.#delay.next();
  }

  succeeded(): void {
    if (this.#delay.tries === 0) return;
    const { logger, doing } = this.#options;
    // What comes and goes, again and again, is told of once in a while as well.
    if (this.#isNews) logger.info(`can ${doing} again`, { failures: this.#delay.tries });
    this.#isNews = false;
    this.#delay.reset();
  }
}

/** Whether the same call may succeed when it is made again. */
export function isRetryable(error: unknown): boolean {
  return isVenturiError(error) ? error.isRetryable : readDatabaseFault(error).isRetryable;
}

/** What the database or its driver said; not what was being done, which counts what it was done to. */
export function whatWasSaid(error: unknown): string {
  const isWrapped = isVenturiError(error) && error.cause !== undefined;
  return readDatabaseFault(isWrapped ? error.cause : error).message;
}
