// ── for tests of applications ────────────────────────────────────────────────────────────────────

export { type Drainable, type DrainedRuns, drain } from "./drain.ts";
export { type EnqueuedOf, enqueued, type JobSource } from "./enqueued.ts";
export { type Clock, ManualClock } from "./manual-clock.ts";
export { MemoryStore, type MemoryStoreOptions } from "./memory-store.ts";

// ── for authors of stores ────────────────────────────────────────────────────────────────────────

export type {
  ContractCase,
  ContractClock,
  ContractNeed,
  ContractSubject,
} from "./store-contract/contract.ts";
export { storeContract } from "./store-contract/index.ts";
