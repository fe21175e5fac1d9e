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

/** What a beat says about the others. */
export interface Beat {
  readonly silent: readonly SilentWorker[];
  /**
   * Whether claims of dead workers may be taken before their leases end. Not so shortly after the server started or
   * this worker's own beats failed: then everyone was silent, and everyone beats before anyone recovers.
   */
  readonly mayTakeFromDead: boolean;
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
  readonly onBeat: (beat: Beat) => void;
}

/** Publishes that this worker lives, often enough to be believed, and learns who has gone silent. */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #trouble: Trouble;
  readonly #abort = new AbortController();
  #shortestLeaseMs: number;
  #stopped = false;
  #beating: Promise<void> | null = null;
  #cancelTimer: CancelTimer | null = null;
  #lastBeatAt: number;
  /** When the last beat that succeeded was sent. */
  #lastSentAt: number;
  #gapEndedAt = Number.NEGATIVE_INFINITY;

  constructor(options: HeartbeatOptions) {
    const { clock, logger } = options;
    this.#options = options;
    this.#trouble = new Trouble({ clock, logger, doing: "publish a heartbeat" });
    this.#shortestLeaseMs = options.registration.shortestLeaseMs;
    this.#lastBeatAt = clock.now();
    this.#lastSentAt = this.#lastBeatAt;
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
      if (!this.#stopped) this.#trouble.failed(error);
      return this.#intervalMs(heartbeatMs);
    }
    this.#trouble.succeeded();
    const now = clock.now();
    if (now - this.#lastBeatAt > workerTimeoutMs / 2) this.#gapEndedAt = now;
    this.#lastBeatAt = now;
    const wasSilent = now - this.#lastSentAt > workerTimeoutMs;
    this.#lastSentAt = sentAt;
    const isSettledIn =
      result.serverUpMs >= workerTimeoutMs && now - this.#gapEndedAt >= workerTimeoutMs;
    const { silent, others = 0 } = result;
    if (!this.#stopped) onBeat({ silent, others, mayTakeFromDead: isSettledIn, wasSilent });
    // The interval counts from sending to sending, so that a slow answer does not make this worker look silent.
    const rest = this.#intervalMs(heartbeatMs) - (now - sentAt);
    return Math.max(
      leastIntervalMs,
      Math.min(rest, (result.nextSuspectMs ?? Number.POSITIVE_INFINITY) + 1),
    );
  }

  #intervalMs(heartbeatMs: number): number {
    const { workerTimeoutMs } = this.#options.registration;
    return Math.max(
      leastIntervalMs,
      Math.min(heartbeatMs, workerTimeoutMs / 3, this.#shortestLeaseMs / 3),
    );
  }
}
