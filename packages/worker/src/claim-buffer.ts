import type { CancelTimer, Clock } from "./clock.ts";

/** What the buffer must know of a claim. */
export interface Buffered {
  /** Monotonic instant of the claim's answer. */
  readonly receivedAt: number;
  /** Monotonic instant when the lease ends at the earliest. */
  readonly leaseEndsAt: number;
  /** The lease in milliseconds. */
  readonly leaseMs: number;
}

/** How long a job claimed ahead is kept at most where the worker decided to claim it, in milliseconds. */
const mostWaitMs = 1_000;
/** How long it is kept where the application fixed how many are claimed ahead: this part of its lease. */
const leaseShare = 1 / 3;

export interface ClaimBufferOptions<Run extends Buffered> {
  readonly clock: Clock;
  /** Whether a job is kept for a second at most, rather than for a third of its lease. */
  readonly isAuto: boolean;
  /** These have waited for too long; they are no longer in the buffer. */
  readonly onOverdue: (runs: readonly Run[]) => void;
}

/** Claims whose handlers wait for a slot, first come first, watched by one timer. */
export class ClaimBuffer<Run extends Buffered> {
  readonly #options: ClaimBufferOptions<Run>;
  #runs: Run[] = [];
  /** Where the first of them is: taking from the front of an array moves all the others. */
  #head = 0;
  /** When the first of these claims is to be handed back, unless it has started by then. */
  #earliest = Number.POSITIVE_INFINITY;
  #armedFor = Number.POSITIVE_INFINITY;
  #cancel: CancelTimer | null = null;

  constructor(options: ClaimBufferOptions<Run>) {
    this.#options = options;
  }

  get size(): number {
    return this.#runs.length - this.#head;
  }

  push(run: Run): void {
    this.#runs.push(run);
    this.#earliest = Math.min(this.#earliest, this.#until(run));
  }

  shift(): Run | undefined {
    const run = this.#runs[this.#head];
    if (run === undefined) return undefined;
    this.#head += 1;
    if (this.#head === this.#runs.length) this.#clear();
    return run;
  }

  /** Those that have no slot yet. */
  waiting(): Run[] {
    return this.#runs.slice(this.#head);
  }

  remove(run: Run): boolean {
    const waiting = this.waiting();
    const place = waiting.indexOf(run);
    if (place === -1) return false;
    waiting.splice(place, 1);
    this.#replace(waiting);
    return true;
  }

  /** Takes all of them out. */
  takeAll(): Run[] {
    const waiting = this.waiting();
    this.#clear();
    return waiting;
  }

  /** Sets the timer that hands back what is left here for too long. */
  watch(): void {
    if (this.size === 0 || this.#earliest >= this.#armedFor) return;
    const { clock } = this.#options;
    this.stop();
    this.#armedFor = this.#earliest;
    this.#cancel = clock.after(this.#armedFor - clock.now(), () => this.#look());
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#armedFor = Number.POSITIVE_INFINITY;
  }

  #look(): void {
    this.stop();
    const now = this.#options.clock.now();
    const kept: Run[] = [];
    const overdue: Run[] = [];
    this.#earliest = Number.POSITIVE_INFINITY;
    for (const run of this.waiting()) {
      const until = this.#until(run);
      (until <= now ? overdue : kept).push(run);
      if (until > now) this.#earliest = Math.min(this.#earliest, until);
    }
    this.#replace(kept);
    if (overdue.length > 0) this.#options.onOverdue(overdue);
    this.watch();
  }

  /** Until when it may be kept, on the monotonic clock. */
  #until({ receivedAt, leaseEndsAt, leaseMs }: Run): number {
    const until = leaseEndsAt - leaseMs * (1 - leaseShare);
    return this.#options.isAuto ? Math.min(until, receivedAt + mostWaitMs) : until;
  }

  #replace(runs: Run[]): void {
    this.#runs = runs;
    this.#head = 0;
  }

  #clear(): void {
    this.#replace([]);
  }
}
