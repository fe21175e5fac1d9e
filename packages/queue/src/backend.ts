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
 * Some jobs may have to wait for a transaction that is still open: those with a key for one that has enqueued a job of
 * its bucket, those with an id of the caller's for one that has enqueued the same, and those of a kind that is not
 * stored yet for one that has enqueued its first job. A merge function's statements may start over besides. Where
 * there are connections for it, other jobs do not wait with them.
 */
export class Lanes {
  readonly #plain: EnqueueLane;
  readonly #waiting: EnqueueLane;
  readonly #createLane: (() => EnqueueLane) | null;
  /** Kinds that earlier calls have stored: nobody waits for these. */
  readonly #storedKinds = new Set<string>();
  /** Of each kind that none has been stored of yet. */
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

  of(jobs: readonly QueuedJob[]): EnqueueLane {
    if (this.#createLane === null) return this.#plain;
    let mayWait = false;
    for (const { kind, dedupKey, repeatable } of jobs) {
      if (!this.#storedKinds.has(kind)) return this.#ofNewKind(kind, this.#createLane);
      mayWait ||= typeof dedupKey === "string" || repeatable === true;
    }
    return mayWait ? this.#waiting : this.#plain;
  }

  /** A call has been stored that went this way: what has piled up behind it goes with the jobs of known kinds. */
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

/** Whatever goes wrong there has ended the caller's transaction: nothing can be shared, isolated or repeated. */
export function transactionLanes(send: Send): Lanes {
  return Lanes.ofOne(new EnqueueLane({ send, coalesces: () => false, isolates: () => false }));
}

/** A transaction that is still open holds the key, the kind or the id of some job. */
const lockNotAvailable = "55P03";

/** Whether one job may be to blame for a failed statement; most others are the whole database's. */
export function mayBeOneJobs(error: unknown): boolean {
  if (!isVenturiError(error)) return true;
  if (error.code === "merge" || error.sqlState === lockNotAvailable) return true;
  if (error.isRetryable || error.code === "not-migrated" || error.code === "closed") return false;
  return error.sqlState === undefined || !connectionStates.test(error.sqlState);
}

/** Wrong credentials, no such database, a transaction in the wrong state. */
const connectionStates = /^(28|3D|25)/;
