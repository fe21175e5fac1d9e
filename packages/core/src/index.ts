// ── tasks: what applications define ──────────────────────────────────────────────────────────────

export { Backoff, type BackoffOptions, retryDelay } from "./backoff.ts";
export type { DedupKey } from "./dedup-key.ts";
export { type Duration, type Instant, parseDuration } from "./duration.ts";
export type { Handler, JobContext, TaskHandler } from "./handler.ts";
export { isUnsentJob, type UnsentJob } from "./job.ts";
export type { CarryProblem, HasNotJson, PayloadProblem } from "./json-type.ts";
export {
  type ConstantMerge,
  type Decision,
  Merge,
  type MergeChanges,
  type MergeFunction,
  type Pending,
} from "./merge.ts";
export type { Priority } from "./priority.ts";
export type { InputOf, MaybePromise, OutputOf } from "./schema.ts";
export {
  defineTask,
  isTask,
  type Task,
  type TaskCarry,
  type TaskInput,
  type TaskPayload,
} from "./task.ts";
export type { TaskSpec } from "./task-spec.ts";

// ── outcomes: what handlers return and throw ─────────────────────────────────────────────────────

export { type CompletedOutcome, Outcome, type PausedOutcome } from "./outcome.ts";
export { TaskError } from "./task-error.ts";

// ── events: what is published on diagnostics channels ────────────────────────────────────────────

export type {
  ClaimEvent,
  EnqueueCall,
  EnqueueEvent,
  ErrorSummary,
  Events,
  JobToEnqueue,
  RecoverEvent,
  RunEvent,
  RunFacts,
  RunStartEvent,
  RunWrapper,
  SettleEvent,
  SettleFacts,
  WorkerEvent,
} from "./events.ts";

// ── records and errors: what applications get back ───────────────────────────────────────────────

export type { CleanupFilter } from "./cleanup-filter.ts";
export {
  type AbortCode,
  isVenturiError,
  type ValidationIssue,
  VenturiError,
  type VenturiErrorCode,
  type VenturiErrorOptions,
} from "./errors.ts";
export type { Headers } from "./headers.ts";
export type { JobFilter, JobPage } from "./job-filter.ts";
export { isJobId, type JobId } from "./job-id.ts";
export type {
  CountsByKind,
  EndStatus,
  FailureDetail,
  JobRecord,
  JobStatus,
  JournalEntry,
  JournalOutcome,
  Stats,
} from "./journal.ts";
export { type LogFields, type Logger, type PinoLike, pinoLogger, silentLogger } from "./logger.ts";

// ══ for adapters and runtimes ════════════════════════════════════════════════════════════════════
// What follows is used by queues, workers and stores; applications need none of it.

export { toLogger } from "./logger.ts";
// ── ports ────────────────────────────────────────────────────────────────────────────────────────

export {
  type BeatResult,
  type ClaimedJob,
  type ClaimKind,
  type ClaimRef,
  type ClaimRequest,
  type ClaimResult,
  type CleanupRequest,
  type CompleteRequest,
  type EnqueuedJob,
  type EnqueueJob,
  type EnqueueOutcome,
  type EnqueueRequest,
  type ExtendLeaseRequest,
  type ExtendLeaseResult,
  type FindCandidatesRequest,
  type FindCandidatesResult,
  type FindStaleRequest,
  type HandBackRequest,
  type JobQuery,
  type JobRequest,
  type ListenRequest,
  type Notifier,
  type OperatorStore,
  PORT_VERSION,
  type ProducerStore,
  type ReadJournalRequest,
  type RecoverRequest,
  type SettleRequest,
  type SettleVerdict,
  type Signalled,
  type SilentWorker,
  type Store,
  type StoreCapabilities,
  type Subscription,
  type UndoneClaim,
  type WorkerId,
  type WorkerRegistration,
  type WorkerStore,
} from "./store.ts";

// ── decisions ────────────────────────────────────────────────────────────────────────────────────

export { planAhead, type WorkObserved } from "./claim-ahead.ts";
export {
  type ClaimPlan,
  inTurns,
  type KindLoad,
  planClaim,
  type Turn,
  takeTurns,
  type WaitingJob,
} from "./claim-plan.ts";
export { resolveCleanupFilter } from "./cleanup-filter.ts";
export { isDefect } from "./defect.ts";
export { resolveJobFilter, toJobPage } from "./job-filter.ts";
export {
  type ChosenCandidate,
  type MergeChoice,
  type MergePlan,
  type MergePlanOptions,
  planMerges,
  type UndecidedJob,
} from "./merge-plan.ts";
export type { MergeCandidate } from "./pending-row.ts";
export { priorityFloor } from "./priority.ts";
export { COUNTED_SILENCE_MS, decideRecovery, type Recovery, type StaleClaim } from "./recovery.ts";
export {
  decideSettlement,
  type RunResult,
  type RunToSettle,
  reachesBackstop,
  type Settlement,
  type SettlementOutcome,
  type SettlementPolicy,
} from "./settlement.ts";

// ── values: checking, encoding, reading ──────────────────────────────────────────────────────────

export { AbortWatch } from "./abort-watch.ts";
export { checkMembers, readSignal, refuseBinary, toSignal } from "./argument.ts";
export { askPool } from "./ask-pool.ts";
export { isBackoff } from "./backoff.ts";
export { encodeDedupKey, MAX_DEDUP_KEY_CHARACTERS } from "./dedup-key.ts";
export { dateOf, differenceMs, durationMs, FAR_FUTURE_MS, toDate, toEpochMs } from "./duration.ts";
export { MAX_HEADERS_LENGTH, readHeaders, toHeaders } from "./headers.ts";
export { createJobIds, fromUuid, type JobIdSources, toJobId, toUuid } from "./job-id.ts";
export { endStatuses, jobStatuses, journalOutcomes } from "./journal.ts";
export { isKind, MAX_KIND_CHARACTERS, toKind } from "./kind.ts";
export { MAX_LEASE_MS, MIN_LEASE_MS, toLeaseMs } from "./lease.ts";
export { isConstantMerge, isDecision } from "./merge.ts";
export { isOutcome } from "./outcome.ts";
export {
  decodeJson,
  encodeJson,
  MAX_JSON_DEPTH,
  MAX_JSON_LENGTH,
  MAX_JSON_PARTS,
} from "./payload-codec.ts";
export type { PreparedJob } from "./prepared-job.ts";
export {
  isPriority,
  type PriorityTier,
  priorities,
  priorityOfTier,
  priorityTier,
  toPriority,
} from "./priority.ts";
export { readMember } from "./read-member.ts";
export { isPromise } from "./schema.ts";
export { isTaskError } from "./task-error.ts";

// ── failures ─────────────────────────────────────────────────────────────────────────────────────

export { abortReason, invalidArgument, readArgument, show } from "./errors.ts";
export { describeFailure, type Failure, failureMessage, MAX_NOTE_LENGTH } from "./failure-note.ts";
export { isRetryableSqlState } from "./sql-state.ts";
export { cleanText, shortHash, unstorableText } from "./text.ts";

// ── PostgreSQL: the contract between lean producers and the migrated schema ──────────────────────

export {
  type DatabaseFault,
  type FailedStatement,
  readDatabaseFault,
  type StatementFate,
  toDatabaseError,
} from "./database-error.ts";
export { enqueueUnknown, toEnqueueError } from "./enqueue-error.ts";
export { decodeEnqueued, encodeEnqueue, enqueueCall } from "./enqueue-wire.ts";
export { decodeMergeCandidates, encodeMergeKeys, mergeCandidatesCall } from "./merge-wire.ts";
export { guardConnection, hearClient, hearClients } from "./pool-guard.ts";
export {
  DEFAULT_NAMES,
  type NameOptions,
  type Names,
  qualifiedName,
  quoteIdentifier,
  resolveNames,
} from "./prefix.ts";
export { answerRows } from "./wire-column.ts";
