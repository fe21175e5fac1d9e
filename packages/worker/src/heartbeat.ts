import type {
  BeatResult,
  Logger,
  SilentWorker,
  WorkerId,
  WorkerRegistration,
  WorkerStore,
} from "@venturi/core";
import type { CancelTimer, Clock } from "./clock.ts";
import { Steadiness } from "./steadiness.ts";
import { Trouble } from "./trouble.ts";

/** No two beats follow each other faster, in milliseconds. */
const leastIntervalMs = 50;
/** The longest wait before a beat that failed is made again: whoever lives is to be heard of soon after an outage. */
const mostRetryMs = 2_000;
/** Those that wake for the nearest suspect do so about this far apart, in milliseconds. */
const wakeStepMs = 500;
/** How often whoever waits to take claims of a dead worker beats in that one's timeout: twice would be a gap. */
const beatsToRipen = 4;

/** A worker that has gone silent. */
export interface Silent extends SilentWorker {
  /**
   * Whether it is dead, and its claims may be taken before their leases end. Not so shortly after the server or this
   * worker started, its own beats failed or came more seldom than the other's have to, or the store's clock was set
   * forward: then everyone may have been cut off or only look silent, and has its own timeout to beat again before
   * anyone recovers.
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
  readonly #steadiness: Steadiness;

  constructor(options: HeartbeatOptions) {
    const { clock, logger, random = Math.random } = options;
    this.#options = options;
    this.#random = random;
    const doing = "publish a heartbeat";
    this.#trouble = new Trouble({ clock, logger, doing, mostMs: mostRetryMs, random });
    this.#shortestLeaseMs = options.registration.shortestLeaseMs;
    this.#steadiness = new Steadiness(clock.now());
  }

  /** When the last beat that succeeded was sent; before the first, when this worker started. */
  get lastSentAt(): number {
    return this.#steadiness.lastSentAt;
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
    const unheardMs = this.#steadiness.answered({ sentAt, now, clockMs: result.clockMs });
    const wasSilent = unheardMs > workerTimeoutMs;
    const silent = this.#judged(result, now);
    const { others = 0 } = result;
    if (!this.#stopped) onBeat({ silent, others, wasSilent });
    // Intervals count from sending to sending, so that a slow answer does not make this worker look silent.
    const rest = this.#intervalMs(heartbeatMs) - (now - sentAt);
    const ripe = this.#ripeMs(silent, result, { sentAt, now });
    return Math.max(leastIntervalMs, Math.min(rest, this.#wakeMs(result), ripe));
  }

  #judged({ silent, serverUpMs, others }: BeatResult, now: number): Silent[] {
    const { registration, isBrief } = this.#options;
    return silent.map((worker) => {
      const { dead, timeoutMs = registration.workerTimeoutMs } = worker;
      // A brief session that waited would never take anything. If another lives, that one will.
      const leftMs =
        isBrief && others === 0
          ? timeoutMs - serverUpMs
          : this.#unsteadyMs(timeoutMs, serverUpMs, now);
      return { ...worker, timeoutMs, mayBeTakenFrom: dead && leftMs <= 0 };
    });
  }

  /** How long until this worker and the server have been there for a timeout, without a gap. */
  #unsteadyMs(timeoutMs: number, serverUpMs: number, now: number): number {
    // A server that started later than it is now had its clock set back: since when it is up cannot be known.
    const upMs = serverUpMs < 0 ? Number.POSITIVE_INFINITY : serverUpMs;
    return Math.max(this.#steadiness.since(timeoutMs) + timeoutMs - now, timeoutMs - upMs);
  }

  /**
   * When to beat next for the sake of those that are dead and may not be taken from yet: as soon as one may be, and
   * until then often enough for that, where the regular beats are not.
   */
  #ripeMs(
    silent: readonly Silent[],
    { serverUpMs }: BeatResult,
    { sentAt, now }: { readonly sentAt: number; readonly now: number },
  ): number {
    const waits = silent
      .filter(({ dead, mayBeTakenFrom }) => dead && !mayBeTakenFrom)
      .map(({ timeoutMs = 0 }) => {
        const leftMs = this.#unsteadyMs(timeoutMs, serverUpMs, now) + 1;
        return Math.min(leftMs, timeoutMs / beatsToRipen - (now - sentAt));
      });
    return Math.min(...waits);
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
