export { createDatabase, dropDatabase, withDatabase } from "./databases.ts";
export { type EmbeddedPostgres, type Standby, startEmbedded } from "./embedded.ts";
export type { PostgresOptions, RunningPostgres } from "./options.ts";
export { hasPgBouncer, PgBouncer } from "./pgbouncer.ts";
export { providePostgres } from "./provide.ts";
export { chooseServerUser, makeWorkFolder } from "./server-user.ts";
