import { type ClaimPlan, type JobId, type KindLoad, planClaim, type Turn } from "@venturi/core";

/** A claim brings no more than this, unless the slots take more, or half of what is to be claimed ahead is more. */
const mostAtOnce = 2_000;

/** How one registered kind stands. */
export interface KindSlots extends KindLoad {
  taken: number;
  /** Whether the store may have due jobs of this kind that no claim has asked for yet. */
  mayWait: boolean;
}

/**
 * Counts running handlers: at most `concurrency`, at most its cap of a kind. A handler whose claim was lost still
 * runs, so it still counts. A job claimed ahead counts towards its kind's cap as if it ran, so that it can start as
 * soon as any slot is free.
 */
export class Slots {
  readonly concurrency: number;
  readonly #kinds: KindSlots[] = [];
  #running = 0;
  /** Of those that run, the jobs whose handlers did not end with their call. */
  readonly #goingOn = new Set<JobId>();
  /** Running jobs whose claim was lost: they must not be claimed before their handlers end. */
  readonly #barred = new Set<JobId>();
  #ahead = 0;
  #onFree: (mayClaimAgain: boolean) => void = () => undefined;

  constructor(concurrency: number) {
    this.concurrency = concurrency;
  }

  addKind(kind: string, cap: number | null): KindSlots {
    const slots: KindSlots = { kind, cap, taken: 0, mayWait: true };
    this.#kinds.push(slots);
    return slots;
  }

  get running(): number {
    return this.#running;
  }

  /** Whether a handler of this job goes on that was called earlier. */
  isRunning(jobId: JobId): boolean {
    return this.#goingOn.has(jobId);
  }

  /** Jobs claimed that have not started. */
  get ahead(): number {
    return this.#ahead;
  }

  get hasFree(): boolean {
    return this.#running < this.concurrency;
  }

  /** A job has been claimed: its place is kept until it starts, or is given up. */
  reserve(kind: KindSlots): void {
    kind.taken += 1;
    this.#ahead += 1;
  }

  /** A job that was claimed does not start. */
  giveUp(kind: KindSlots): void {
    kind.taken -= 1;
    this.#ahead -= 1;
  }

  /** The handler of a job that was claimed is called: its place is a slot now. */
  start(): void {
    this.#ahead -= 1;
    this.#running += 1;
  }

  /** The handler has been called, and has not ended. */
  goesOn(jobId: JobId): void {
    this.#goingOn.add(jobId);
  }

  /** Whom to tell that a handler has ended, and whether its job was kept from being claimed until now. */
  onFree(callback: (mayClaimAgain: boolean) => void): void {
    this.#onFree = callback;
  }

  /** A handler has ended. */
  free(kind: KindSlots, jobId: JobId): void {
    kind.taken -= 1;
    this.#running -= 1;
    this.#goingOn.delete(jobId);
    this.#onFree(this.#barred.size > 0 && this.#barred.delete(jobId));
  }

  /** The claim of a job is lost: it is not to be claimed while its handler runs. */
  bar(jobId: JobId): void {
    if (this.#goingOn.has(jobId)) this.#barred.add(jobId);
  }

  /** Jobs that must not be claimed now. */
  barred(): JobId[] {
    return [...this.#barred];
  }

  /** Whether any kind may have jobs waiting that no claim has asked for yet. */
  get expectsMore(): boolean {
    return this.#kinds.some(({ mayWait }) => mayWait);
  }

  /** Something may have become due. */
  expectAll(): void {
    for (const kind of this.#kinds) kind.mayWait = true;
  }

  /**
   * What to claim now: for all slots that are free, and `ahead` jobs more. Null when nothing waits for the room there
   * is; when there is none; and while all slots are busy and what has been claimed ahead is over half of it. Where much
   * is claimed ahead it comes in two claims, so that the second is under way while what the first has brought runs.
   */
  plan(turn: Turn, ahead = 0): ClaimPlan | null {
    const inAll = this.#running + this.#ahead;
    const free = this.concurrency + ahead - inAll;
    if (free < 1 || (inAll >= this.concurrency && this.#ahead > ahead / 2)) return null;
    // A claim is worth its statement only if a kind that has room may have jobs waiting.
    if (!this.#kinds.some(({ mayWait, cap, taken }) => mayWait && (cap === null || taken < cap)))
      return null;
    const most = Math.max(this.concurrency, Math.floor(ahead / 2), mostAtOnce);
    return planClaim({ free: Math.min(free, most), kinds: this.#kinds, turn });
  }

  /** A claim is about to ask for these kinds: only what happens from now on can raise their flags again. */
  asking(plan: ClaimPlan): void {
    for (const slots of this.#kindsOf(plan)) slots.mayWait = false;
  }

  /** Learns from a claim's answer which kinds may have more: those of which it brought all it was allowed to. */
  learn(plan: ClaimPlan, jobs: readonly { readonly kind: string }[]): void {
    if (jobs.length === 0) return;
    const isFull = jobs.length >= plan.limit;
    const brought = new Map<string, number>();
    if (!isFull) for (const { kind } of jobs) brought.set(kind, (brought.get(kind) ?? 0) + 1);
    const limits = new Map(plan.kinds.map(({ kind, limit }) => [kind, limit]));
    for (const slots of this.#kindsOf(plan)) {
      // Cut off at its limit, a claim says nothing about what else waits.
      if (isFull || (brought.get(slots.kind) ?? 0) >= (limits.get(slots.kind) ?? 1)) {
        slots.mayWait = true;
      }
    }
  }

  #kindsOf(plan: ClaimPlan): readonly KindSlots[] {
    if (plan.kinds.length === this.#kinds.length) return this.#kinds;
    const asked = new Set(plan.kinds.map(({ kind }) => kind));
    return this.#kinds.filter(({ kind }) => asked.has(kind));
  }
}
