export { expectInvariants, type InvariantOptions, invariantViolations } from "./invariants.ts";
export type { ProvidedPostgres } from "./provided.ts";
export { type TestDatabase, testDatabase } from "./test-database.ts";
export { expectNoWarnings } from "./warnings.ts";
