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

/** The shortest time between two beats, in milliseconds. */
const leastIntervalMs = 50;
/** The longest wait before a failed beat is tried again, in milliseconds, so that live workers are heard of soon after an outage. */
const mostRetryMs = 2_000;
/** Workers that beat early to look at the nearest suspect do so about this far apart, in milliseconds. */
const wakeStepMs = 500;
/** How many beats a worker makes in the timeout of a dead one whose claims it waits to take. With two there would be a gap. */
const beatsToRipen = 4;

/** A worker that has gone silent. */
export interface Silent extends SilentWorker {
  /**
   * Whether it is dead and its claims may be taken before their leases end.
   *
   * A dead worker may have been cut off by an outage that this worker had too, or only look silent because the store's
   * clock was set forward. So its claims may not be taken until its own timeout has passed since the server or this worker
   * started, since this worker's beats failed or came too seldom, and since the clock was set: it can beat again first.
   */
  readonly mayBeTakenFrom: boolean;
}

/** What the answer to a beat says about the other workers. */
export interface Beat {
  readonly silent: readonly Silent[];
  /** How many other workers are alive, as far as the store knows. */
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

/** Publishes that this worker is alive, often enough not to be taken for dead, and learns which workers have gone silent. */
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

  /** A job has a shorter lease than the worker has published: from now on it beats more often, and publishes that lease. */
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

  /** How long until this worker and the server have been up for a timeout without a gap, in milliseconds. */
  #unsteadyMs(timeoutMs: number, serverUpMs: number, now: number): number {
    // A server that started later than it is now had its clock set back: since when it is up cannot be known.
    const upMs = serverUpMs < 0 ? Number.POSITIVE_INFINITY : serverUpMs;
    return Math.max(this.#steadiness.since(timeoutMs) + timeoutMs - now, timeoutMs - upMs);
  }

  /**
   * When to beat next because of dead workers whose claims may not be taken yet, in milliseconds: as soon as those of one
   * may be taken, and until then often enough that there is no gap.
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
   * When to beat next to see whether the worker that would become suspect first has done so, in milliseconds. One look is
   * enough, but every worker makes one: so they are spread out, and with many workers few come before the ordinary beats.
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
