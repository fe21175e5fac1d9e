import type {
  BeatResult,
  Logger,
  SilentWorker,
  WorkerId,
  WorkerRegistration,
  WorkerStore,
} from "@venturi/core";
import type { CancelTimer, Clock } from "./clock.ts";
import { Trouble } from "./trouble.ts";

/** No two beats follow each other faster, in milliseconds. */
const leastIntervalMs = 50;
/** The longest wait before a beat that failed is made again: whoever lives is to be heard of soon after an outage. */
const mostRetryMs = 2_000;
/** Those that wake for the nearest suspect do so about this far apart, in milliseconds. */
const wakeStepMs = 500;
/** Beats of its own that a worker misses before it takes that for an outage, in which others missed theirs. */
const missedBeats = 3;

/** A worker that has gone silent. */
export interface Silent extends SilentWorker {
  /**
   * Whether it is dead, and its claims may be taken before their leases end. Not so shortly after the server or this
   * worker started, or its own beats failed: then everyone may have been cut off, and has its own timeout to beat
   * again before anyone recovers.
   */
  readonly mayBeTakenFrom: boolean;
}

/** What a beat says about the others. */
export interface Beat {
  readonly silent: readonly Silent[];
  /** How many other workers live, as far as the store knows. */
  readonly others: number;
  /** Whether this worker's own beats had stopped for so long that others took it for dead. */
  readonly wasSilent: boolean;
}

export interface HeartbeatOptions {
  readonly store: Pick<WorkerStore, "beat">;
  readonly worker: WorkerId;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly registration: WorkerRegistration;
  readonly heartbeatMs: number;
  /** Whether the session is too short to wait for somebody else's timeout, as that of `runOnce`. */
  readonly isBrief?: boolean;
  /** @defaultValue Math.random */
  readonly random?: () => number;
  readonly onBeat: (beat: Beat) => void;
}

/** Publishes that this worker lives, often enough to be believed, and learns who has gone silent. */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #random: () => number;
  readonly #trouble: Trouble;
  readonly #abort = new AbortController();
  #shortestLeaseMs: number;
  #stopped = false;
  #beating: Promise<void> | null = null;
  #cancelTimer: CancelTimer | null = null;
  #lastBeatAt: number;
  /** When the last beat that succeeded was sent. */
  #lastSentAt: number;
  /** Since when this worker has been beating without a gap: others may have been cut off until then. */
  #steadySince: number;

  constructor(options: HeartbeatOptions) {
    const { clock, logger, random = Math.random } = options;
    this.#options = options;
    this.#random = random;
    const doing = "publish a heartbeat";
    this.#trouble = new Trouble({ clock, logger, doing, mostMs: mostRetryMs, random });
    this.#shortestLeaseMs = options.registration.shortestLeaseMs;
    this.#lastBeatAt = clock.now();
    this.#lastSentAt = this.#lastBeatAt;
    this.#steadySince = this.#lastBeatAt;
  }

  /** When the last beat that succeeded was sent; before the first, when this worker started. */
  get lastSentAt(): number {
    return this.#lastSentAt;
  }

  /** Beats at once and from then on; resolves after the first try. */
  start(): Promise<void> {
    return this.#beat();
  }

  /** A job brought a shorter lease than was published: beat more often, and let the others know. */
  noticeLease(leaseMs: number): void {
    if (leaseMs >= this.#shortestLeaseMs) return;
    this.#shortestLeaseMs = leaseMs;
    if (!this.#beating && !this.#stopped) void this.#beat();
  }

  /** No further beat; resolves when the one in flight is over. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#abort.abort();
    await this.#beating;
  }

  #beat(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#beating = this.#publish().then((nextMs) => {
      this.#beating = null;
      if (this.#stopped) return;
      this.#cancelTimer = this.#options.clock.after(nextMs, () => void this.#beat());
    });
    return this.#beating;
  }

  /** Returns when to beat next, in milliseconds. */
  async #publish(): Promise<number> {
    const { store, worker, clock, registration, heartbeatMs, onBeat } = this.#options;
    const { workerTimeoutMs } = registration;
    const shortestLeaseMs = this.#shortestLeaseMs;
    const signal = this.#abort.signal;
    const sentAt = clock.now();
    let result: BeatResult;
    try {
      result = await store.beat({ ...registration, shortestLeaseMs, worker, signal });
    } catch (error) {
      const intervalMs = this.#intervalMs(heartbeatMs);
      return this.#stopped ? intervalMs : Math.min(intervalMs, this.#trouble.failed(error));
    }
    this.#trouble.succeeded();
    const now = clock.now();
    const gapMs = Math.min(workerTimeoutMs / 2, missedBeats * heartbeatMs);
    if (now - this.#lastBeatAt > gapMs) this.#steadySince = now;
    this.#lastBeatAt = now;
    const wasSilent = now - this.#lastSentAt > workerTimeoutMs;
    this.#lastSentAt = sentAt;
    const silent = this.#judged(result, now);
    const { others = 0 } = result;
    if (!this.#stopped) onBeat({ silent, others, wasSilent });
    // The interval counts from sending to sending, so that a slow answer does not make this worker look silent.
    const rest = this.#intervalMs(heartbeatMs) - (now - sentAt);
    return Math.max(
      leastIntervalMs,
      Math.min(rest, this.#wakeMs(result), this.#ripeMs(silent, now)),
    );
  }

  #judged({ silent, serverUpMs, others }: BeatResult, now: number): Silent[] {
    const { registration, isBrief } = this.#options;
    // A brief session that waited would never take anything. If another lives, that one will.
    const steadyMs = isBrief && others === 0 ? serverUpMs : now - this.#steadySince;
    const heardMs = Math.min(steadyMs, serverUpMs);
    return silent.map((worker) => {
      const { dead, timeoutMs = registration.workerTimeoutMs } = worker;
      return { ...worker, timeoutMs, mayBeTakenFrom: dead && heardMs >= timeoutMs };
    });
  }

  /** When the first of the dead may be taken from for which this worker has not lived for long enough. */
  #ripeMs(silent: readonly Silent[], now: number): number {
    const waits = silent
      .filter(({ dead, mayBeTakenFrom }) => dead && !mayBeTakenFrom)
      .map(({ timeoutMs = 0 }) => this.#steadySince + timeoutMs - now)
      .filter((ms) => ms > 0);
    return Math.min(...waits) + 1;
  }

  /**
   * When to look whether the nearest suspect is one, in milliseconds. All the others do so too, except for the suspect,
   * and one is enough: the more they are, the fewer come before their ordinary beats.
   */
  #wakeMs({ nextSuspectMs, others = 0 }: BeatResult): number {
    if (nextSuspectMs === null) return Number.POSITIVE_INFINITY;
    return nextSuspectMs + 1 + this.#random() * Math.max(0, others - 1) * wakeStepMs;
  }

  #intervalMs(heartbeatMs: number): number {
    const { workerTimeoutMs } = this.#options.registration;
    return Math.max(
      leastIntervalMs,
      Math.min(heartbeatMs, workerTimeoutMs / 3, this.#shortestLeaseMs / 3),
    );
  }
}
