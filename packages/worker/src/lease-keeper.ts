import type { CancelTimer, Clock } from "./clock.ts";

/** What the keeper must know of a run. */
export interface Leased {
  /** Monotonic instant when the lease ends at the earliest. */
  readonly leaseEndsAt: number;
  /** Monotonic instant when the lease has ended for certain. */
  readonly overdueAt: number;
  /** The lease in milliseconds. */
  readonly leaseMs: number;
}

export interface LeaseKeeperOptions<Run extends Leased> {
  readonly clock: Clock;
  /** A little before the lease ends: the handler should come to an end. */
  readonly onEnding: (run: Run) => void;
  /** The lease has ended and the handler still runs. */
  readonly onOverdue: (run: Run) => void;
}

/** How long before its end a lease is announced as ended: a tenth of it, at most this many milliseconds. */
const mostNoticeMs = 1_000;

/**
 * Watches the leases of running handlers with one timer for all. The timer is set for the earliest end ever watched,
 * and when it fires looks through what still runs: leases are long beside runs, so it seldom does.
 */
export class LeaseKeeper<Run extends Leased> {
  readonly #options: LeaseKeeperOptions<Run>;
  /** When to look at each run next. */
  readonly #next = new Map<Run, number>();
  #armedFor = Number.POSITIVE_INFINITY;
  #cancel: CancelTimer | null = null;

  constructor(options: LeaseKeeperOptions<Run>) {
    this.#options = options;
  }

  watch(run: Run): void {
    const at = run.leaseEndsAt - Math.min(run.leaseMs / 10, mostNoticeMs);
    this.#next.set(run, at);
    if (at < this.#armedFor) this.#arm(at);
  }

  /** The handler has ended. */
  release(run: Run): void {
    this.#next.delete(run);
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#next.clear();
    this.#armedFor = Number.POSITIVE_INFINITY;
  }

  #arm(at: number): void {
    this.#cancel?.();
    this.#armedFor = at;
    const { clock } = this.#options;
    this.#cancel = clock.after(at - clock.now(), () => this.#look());
  }

  #look(): void {
    const { clock, onEnding, onOverdue } = this.#options;
    const now = clock.now();
    this.#cancel = null;
    this.#armedFor = Number.POSITIVE_INFINITY;
    for (const [run, at] of [...this.#next]) {
      if (at > now || !this.#next.has(run)) continue;
      // An announced run has its overdue instant as the next one, which lies after the end of the lease.
      if (at < run.overdueAt) {
        this.#next.set(run, run.overdueAt);
        onEnding(run);
      } else {
        this.#next.delete(run);
        onOverdue(run);
      }
    }
    let earliest = Number.POSITIVE_INFINITY;
    for (const at of this.#next.values()) earliest = Math.min(earliest, at);
    if (earliest < Number.POSITIVE_INFINITY) this.#arm(earliest);
  }
}
