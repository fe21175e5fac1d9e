export { type Clock, ManualClock } from "./manual-clock.ts";
export { MemoryStore, type MemoryStoreOptions } from "./memory-store.ts";
export type {
  ContractCase,
  ContractClock,
  ContractNeed,
  ContractSubject,
} from "./store-contract/contract.ts";
export { storeContract } from "./store-contract/index.ts";
