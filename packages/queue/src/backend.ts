import { isVenturiError } from "@venturi/core";
import { EnqueueLane, type Send } from "./enqueue-lane.ts";
import type { QueuedJob } from "./merging.ts";

/** What a queue enqueues through. */
export interface Backend {
  /** Outside of everybody's transactions. */
  readonly lanes: Lanes;
  /** Inside a caller's transaction; throws `invalid-argument` for what is none. */
  lanesWithin(tx: unknown): Lanes;
}

/**
 * Decides which lane a call goes through, so that jobs which may have to wait for an open transaction do not hold up the
 * others, where there are connections for that. Jobs may have to wait
 *
 * - with a dedup key: for a transaction that has enqueued a job whose key shares its lock (and a merge function's
 *   statements may start over);
 * - with an id of the caller's: for one that has enqueued the same id;
 * - of a kind that is not stored yet: for one that has enqueued the first job of the kind.
 */
export class Lanes {
  readonly #plain: EnqueueLane;
  readonly #waiting: EnqueueLane;
  readonly #createLane: (() => EnqueueLane) | null;
  /** Kinds that earlier calls have stored: their jobs need not wait for the kind. */
  readonly #storedKinds = new Set<string>();
  /** The lane of each kind that has not been stored yet. */
  readonly #newKinds = new Map<string, EnqueueLane>();

  /** Over several connections, of which each lane may take one. */
  static ofPool(createLane: () => EnqueueLane): Lanes {
    return new Lanes(createLane(), createLane(), createLane);
  }

  /** One statement at a time, whatever it does. */
  static ofOne(lane: EnqueueLane): Lanes {
    return new Lanes(lane, lane, null);
  }

  private constructor(
    plain: EnqueueLane,
    waiting: EnqueueLane,
    createLane: (() => EnqueueLane) | null,
  ) {
    this.#plain = plain;
    this.#waiting = waiting;
    this.#createLane = createLane;
  }

  /** The lane for the jobs of a call. */
  of(jobs: readonly QueuedJob[]): EnqueueLane {
    if (this.#createLane === null) return this.#plain;
    let mayWait = false;
    for (const { kind, dedupKey, repeatable } of jobs) {
      if (!this.#storedKinds.has(kind)) return this.#ofNewKind(kind, this.#createLane);
      mayWait ||= typeof dedupKey === "string" || repeatable === true;
    }
    return mayWait ? this.#waiting : this.#plain;
  }

  /** A call has been stored through a lane. If that was the lane of a new kind, what has piled up in it moves to the others. */
  stored(lane: EnqueueLane, jobs: readonly QueuedJob[]): void {
    if (lane === this.#plain || lane === this.#waiting) return;
    for (const { kind } of jobs) {
      this.#storedKinds.add(kind);
      this.#newKinds.delete(kind);
    }
    for (const group of lane.takeAll()) this.of(group.jobs).add(group);
  }

  #ofNewKind(kind: string, createLane: () => EnqueueLane): EnqueueLane {
    const lane = this.#newKinds.get(kind) ?? createLane();
    this.#newKinds.set(kind, lane);
    return lane;
  }
}

/** The lane of a caller's transaction. An error ends that transaction, so nothing is shared, isolated or repeated. */
export function transactionLanes(send: Send): Lanes {
  return Lanes.ofOne(new EnqueueLane({ send, coalesces: () => false, isolates: () => false }));
}

/** A transaction that is still open holds the key, the kind or the id of some job. */
const lockNotAvailable = "55P03";

/** Whether a single job may be to blame for a failed statement, rather than the state of the database. */
export function mayBeOneJobs(error: unknown): boolean {
  if (!isVenturiError(error)) return true;
  if (error.code === "merge" || error.sqlState === lockNotAvailable) return true;
  if (error.isRetryable || error.code === "not-migrated" || error.code === "closed") return false;
  return error.sqlState === undefined || !connectionStates.test(error.sqlState);
}

/** Wrong credentials, no such database, a transaction in the wrong state. */
const connectionStates = /^(28|3D|25)/;
