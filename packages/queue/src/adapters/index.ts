export type { AdaptedExecutor } from "./adapted-executor.ts";
export { type DrizzleLike, drizzle } from "./drizzle.ts";
export { type KnexLike, knex } from "./knex.ts";
export { type PostgresJsLike, type PostgresJsRows, postgresJs } from "./postgres-js.ts";
export { type PrismaLike, prisma } from "./prisma.ts";
