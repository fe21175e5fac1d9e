import type { Notifier, WorkerId, WorkerRegistration, WorkerStore } from "@venturi/core";
import { ClaimAhead } from "./claim-ahead.ts";
import { ClaimCheck } from "./claim-check.ts";
import { ClaimLoop } from "./claim-loop.ts";
import type { Clock } from "./clock.ts";
import { Completer } from "./completer.ts";
import { Dispatcher } from "./dispatcher.ts";
import { WorkerEvents } from "./events.ts";
import { HandBack, toUnstarted } from "./hand-back.ts";
import type { HandlerRegistry } from "./handler-registry.ts";
import { Heartbeat } from "./heartbeat.ts";
import { HeldClaims } from "./held-claims.ts";
import type { ContextServices } from "./job-context.ts";
import { LeaseExtender } from "./lease-extender.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { stillHeld, undoUnknownClaims } from "./listed-claims.ts";
import type { ResolvedWorkerOptions } from "./options.ts";
import { Policy } from "./policy.ts";
import { RecoveryService } from "./recovery.ts";
import type { Run } from "./run.ts";
import { SeenJobs } from "./seen-jobs.ts";
import type { SessionReactions } from "./session-reactions.ts";
import { Settler } from "./settler.ts";
import type { Slots } from "./slots.ts";

/** Results that may wait to be settled beside twice the concurrency before no more is claimed. */
const spareResults = 1_000;

/** What the services of a session are made from. */
export interface ServicesSetup {
  readonly store: WorkerStore & Partial<Notifier>;
  readonly worker: WorkerId;
  readonly clock: Clock;
  readonly options: ResolvedWorkerOptions<unknown>;
  readonly registration: WorkerRegistration;
  readonly registry: HandlerRegistry;
  readonly slots: Slots;
  /** Each job at most once, and an end when a claim brings nothing while nothing runs: for `runOnce`. */
  readonly once: boolean;
}

/** What a session works with. */
export type SessionServices = ReturnType<typeof makeServices>;

/**
 * Makes the services of a session. Each is given those that it asks, which are made before it; what it has to tell goes
 * to the session.
 */
export function makeServices(setup: ServicesSetup, on: SessionReactions) {
  const basis = makeBasis(setup);
  const heartbeat = makeHeartbeat(setup, on);
  const leases = new LeaseKeeper<Run>({
    clock: setup.clock,
    onEnding: (run) => on.leaseEnding(run),
    onOverdue: (run) => on.leaseOverdue(run),
  });
  const extender = makeLeaseExtender(setup, on);
  const dispatcher = makeDispatcher(setup, on, { ...basis, heartbeat, leases, extender });
  const settler = makeSettler(setup, on, basis);
  const handBack = makeHandBack(setup, on);
  const claimCheck = makeClaimCheck(setup, on, dispatcher);
  const recovery = makeRecovery(setup, on, { ...basis, dispatcher, handBack });
  const claimLoop = makeClaimLoop(setup, on, { ...basis, dispatcher, settler, handBack });
  setup.slots.onFree((wasBarred) => on.slotFreed(wasBarred));
  return {
    ...basis,
    heartbeat,
    leases,
    extender,
    dispatcher,
    settler,
    handBack,
    claimCheck,
    recovery,
    claimLoop,
  };
}

/** What knows or decides something, and does nothing by itself. */
function makeBasis({ clock, options, registry, once }: ServicesSetup) {
  const { name, logger, backoff, jitterFraction, prefetch, concurrency } = options;
  return {
    ahead: new ClaimAhead(prefetch, concurrency),
    policy: new Policy({ clock, registry, backoff, jitterFraction, logger }),
    events: new WorkerEvents({ worker: name, clock, logger }),
    held: new HeldClaims(),
    seen: new SeenJobs(once),
  };
}

type Basis = ReturnType<typeof makeBasis>;

/** What nearly every service needs. */
function common({ store, worker, clock, options }: ServicesSetup) {
  return { store, worker, clock, logger: options.logger };
}

function makeHeartbeat(setup: ServicesSetup, on: SessionReactions): Heartbeat {
  const { options, registration, once } = setup;
  return new Heartbeat({
    ...common(setup),
    registration,
    heartbeatMs: options.heartbeatMs,
    isBrief: once,
    onBeat: (beat) => on.heard(beat),
  });
}

function makeLeaseExtender(setup: ServicesSetup, on: SessionReactions): LeaseExtender {
  return new LeaseExtender({
    ...common(setup),
    onExtended: (run) => on.leaseExtended(run),
    onLost: (run) => on.claimLost(run),
  });
}

function makeDispatcher(
  setup: ServicesSetup,
  on: SessionReactions,
  asked: Basis & {
    readonly heartbeat: Heartbeat;
    readonly leases: LeaseKeeper<Run>;
    readonly extender: LeaseExtender;
  },
): Dispatcher {
  const { options, registry, slots } = setup;
  const { ahead, events, heartbeat, leases } = asked;
  return new Dispatcher({
    registry,
    slots,
    ahead,
    leases,
    events,
    logger: options.logger,
    services: contextServices(setup, on, asked),
    lastBeatAt: () => heartbeat.lastSentAt,
    workerTimeoutMs: options.workerTimeoutMs,
    panicPolicy: options.panicPolicy,
    state: options.state,
    onEnd: (run, result) => on.ended(run, result),
    onUnstarted: (job, leaseEndsAt) => on.unstarted(toUnstarted(job, leaseEndsAt)),
  });
}

/** What handlers can ask for. */
function contextServices(
  setup: ServicesSetup,
  on: SessionReactions,
  { policy, extender }: Basis & { readonly extender: LeaseExtender },
): ContextServices {
  const completer = new Completer({
    ...common(setup),
    settlement: (run, result) => policy.settlement(run, result),
    onLost: (run) => on.claimLost(run),
  });
  return {
    ...common(setup),
    extendLease: (run, leaseMs) => extender.extend(run, leaseMs),
    complete: (run, tx, note) => completer.complete(run, tx, note),
  };
}

function makeSettler(setup: ServicesSetup, on: SessionReactions, { policy }: Basis): Settler {
  return new Settler({
    ...common(setup),
    refuse: (run, note) => policy.refused(run, note),
    onSettled: (run, outcome) => on.settled(run, outcome),
    onLost: (run) => on.settledInVain(run),
    onDropped: (run) => on.notSettled(run),
    onProgress: () => on.progressed(),
  });
}

function makeHandBack(setup: ServicesSetup, on: SessionReactions): HandBack {
  return new HandBack({
    ...common(setup),
    onHandedBack: (claim, verdict) => on.handedBack(claim, verdict === "lost"),
    onDropped: (claim) => on.notHandedBack(claim),
  });
}

function makeClaimCheck(
  setup: ServicesSetup,
  on: SessionReactions,
  dispatcher: Dispatcher,
): ClaimCheck {
  return new ClaimCheck({
    ...common(setup),
    claims: () => dispatcher.runs(),
    onLost: (run) => on.claimLost(run),
  });
}

function makeRecovery(
  setup: ServicesSetup,
  on: SessionReactions,
  asked: Basis & { readonly dispatcher: Dispatcher; readonly handBack: HandBack },
): RecoveryService {
  const { policy, held, dispatcher, handBack } = asked;
  const { store, worker, options, once } = setup;
  return new RecoveryService({
    ...common(setup),
    jitterFraction: options.jitterFraction,
    // With `once` there may be no second chance.
    sweepsFirst: once,
    backoffOf: (claim) => policy.recoveryBackoff(claim),
    isWaiting: (claim) =>
      claim.holder === worker && (dispatcher.isWaiting(claim) || handBack.isUndoing(claim)),
    stillHeld: (claims) => stillHeld({ store, worker, held: held.size }, claims),
    onRecovery: (claim, recovery) => on.recovered(claim, recovery),
    onRecovered: () => on.mayClaim(),
    onOwnDone: (claim) => on.ownRecovered(claim),
  });
}

function makeClaimLoop(
  setup: ServicesSetup,
  on: SessionReactions,
  asked: Basis & {
    readonly dispatcher: Dispatcher;
    readonly settler: Settler;
    readonly handBack: HandBack;
  },
): ClaimLoop {
  const { clock, options, registry, slots, once } = setup;
  const { concurrency, priorityRatio, pollMaxMs } = options;
  const { ahead, held, seen, dispatcher, settler, handBack } = asked;
  const leaseMsOf = (kind: string): number => registry.get(kind)?.leaseMs ?? options.leaseMs;
  return new ClaimLoop({
    ...common(setup),
    slots,
    ahead: () => ahead.targetNow(clock.now(), (instant) => dispatcher.runningSince(instant)),
    priorityRatio,
    pollMaxMs: once ? Number.POSITIVE_INFINITY : pollMaxMs,
    terms: (kind) => ({ leaseMs: leaseMsOf(kind), backstop: registry.get(kind)?.backstop ?? null }),
    exclude: () => [...handBack.jobIds(), ...seen.ids()],
    hasRoom: () => settler.size <= 2 * (concurrency + ahead.target) + spareResults,
    onAnswerLost: () =>
      undoUnknownClaims({
        ...common(setup),
        isKnown: (claim) => held.knows(claim),
        isHere: (jobId) => slots.isRunning(jobId) || dispatcher.isWaitingFor(jobId),
        leaseMsOf,
        handBack: (claim) => on.unstarted(claim),
      }),
    onBatch: (batch) => on.claimed(batch),
    onEmpty: () => on.claimedNothing(),
  });
}
