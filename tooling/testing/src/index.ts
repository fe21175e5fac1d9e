export type { ProvidedPostgres } from "./provided.ts";
export { type TestDatabase, testDatabase } from "./test-database.ts";
