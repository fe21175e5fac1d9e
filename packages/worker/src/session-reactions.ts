import type { Recovery, RunResult, SettlementOutcome, StaleClaim } from "@venturi/core";
import type { ClaimBatch } from "./claim-loop.ts";
import type { UnstartedClaim } from "./hand-back.ts";
import type { Beat } from "./heartbeat.ts";
import type { Run } from "./run.ts";

/** What the services of a session have to tell. None knows whom it concerns: the session sees to what follows. */
export interface SessionReactions {
  /** A beat was answered. */
  heard(beat: Beat): void;
  /** Something may be claimed that could not be had before. */
  mayClaim(): void;
  /** A claim brought jobs. */
  claimed(batch: ClaimBatch): void;
  /** A claim brought nothing. */
  claimedNothing(): void;
  /** The handler of a claimed job does not start: the claim is to be undone. */
  unstarted(claim: UnstartedClaim): void;
  /** A claim is undone; with `isLost` it was lost before. */
  handedBack(claim: UnstartedClaim, isLost: boolean): void;
  /** A claim could not be undone before its lease ended. */
  notHandedBack(claim: UnstartedClaim): void;
  /** A run has come to its end and is to be settled. */
  ended(run: Run, result: RunResult): void;
  /** A handler has ended; whether its job was kept from being claimed until now. */
  slotFreed(wasBarred: boolean): void;
  /** The store has confirmed how a run ended. */
  settled(run: Run, outcome: SettlementOutcome): void;
  /** A run had lost its claim when it was to be settled. */
  settledInVain(run: Run): void;
  /** A run could not be settled before its lease ended. */
  notSettled(run: Run): void;
  /** Handlers have ended or results have been settled. */
  progressed(): void;
  /** The lease of a run has been extended. */
  leaseExtended(run: Run): void;
  /** The lease of a run is about to end. */
  leaseEnding(run: Run): void;
  /** The lease of a run has ended while its handler goes on. */
  leaseOverdue(run: Run): void;
  /** A run has lost its claim while its handler goes on, or before it started. */
  claimLost(run: Run): void;
  /** The store has confirmed that a stale claim was recovered. */
  recovered(claim: StaleClaim, recovery: Recovery): void;
  /** An overdue claim of this very worker is recovered, or was lost before. */
  ownRecovered(claim: StaleClaim): void;
}
