export { createDatabase, dropDatabase, withDatabase } from "./databases.ts";
export { startEmbedded } from "./embedded.ts";
export type { PostgresOptions, RunningPostgres } from "./options.ts";
export { providePostgres } from "./provide.ts";
