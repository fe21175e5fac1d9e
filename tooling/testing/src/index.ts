export { expectInvariants } from "./invariants.ts";
export type { ProvidedPostgres } from "./provided.ts";
export { openSession } from "./session.ts";
export { type TestDatabase, testDatabase } from "./test-database.ts";
export { inTransaction } from "./transaction.ts";
export { type InvariantOptions, invariantViolations } from "./violations.ts";
export { expectNoWarnings } from "./warnings.ts";
