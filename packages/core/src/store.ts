import type { OperatorStore } from "./operator-store.ts";
import type { ProducerStore } from "./producer-store.ts";
import type { WorkerStore } from "./worker-store.ts";

/**
 * The ports: what a storage adapter implements and what queue and worker call.
 *
 * - Every verb is shaped for batches: one call is one round trip for many jobs.
 * - Requests and results are objects, so that a member can be added without breaking an adapter.
 * - Payloads, carries and attachments cross the ports as JSON text. A store keeps and returns them; it never looks inside.
 * - Every instant and every delay is measured by the store's own clock; no port takes "now" from its caller.
 * - A caller may stop waiting at any time: see {@link Signalled}.
 */
export type {
  ListenRequest,
  Notifier,
  Subscription,
} from "./notifier.ts";
export type {
  CleanupRequest,
  JobQuery,
  JobRequest,
  OperatorStore,
  ReadJournalRequest,
} from "./operator-store.ts";
export { PORT_VERSION, type Signalled, type StoreCapabilities } from "./port.ts";
export type {
  EnqueuedJob,
  EnqueueJob,
  EnqueueOutcome,
  EnqueueRequest,
  FindCandidatesRequest,
  FindCandidatesResult,
  ProducerStore,
} from "./producer-store.ts";
export type {
  BeatResult,
  ClaimedJob,
  ClaimKind,
  ClaimRef,
  ClaimRequest,
  ClaimResult,
  CompleteRequest,
  ExtendLeaseRequest,
  ExtendLeaseResult,
  FindStaleRequest,
  HandBackRequest,
  RecoverRequest,
  SettleRequest,
  SettleVerdict,
  SilentWorker,
  UndoneClaim,
  WorkerId,
  WorkerRegistration,
  WorkerStore,
} from "./worker-store.ts";

/** Everything an adapter can implement; `Tx` is the transaction that `within` and `ctx.complete` accept. */
export interface Store<Tx = never> extends ProducerStore, WorkerStore<Tx>, OperatorStore {
  /** A producer inside the caller's transaction; absent where `capabilities.transactions` is false. */
  within?(tx: Tx): ProducerStore;
}
