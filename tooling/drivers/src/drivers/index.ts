import type { DriverKind } from "../driver.ts";
import { bareSqlDriver } from "./bare-sql.ts";
import { drizzleDriver, drizzlePostgresJsDriver } from "./drizzle.ts";
import { knexDriver, unwrappingKnexDriver } from "./knex.ts";
import { kyselyDriver } from "./kysely.ts";
import { pgDriver } from "./pg.ts";
import { postgresJsDriver, unpreparedPostgresJsDriver } from "./postgres-js.ts";
import { prismaDriver } from "./prisma.ts";
import { rowsAloneDriver } from "./rows-alone.ts";

/** Whatever a team may have that runs SQL. */
export const drivers: readonly DriverKind[] = [
  pgDriver,
  kyselyDriver,
  postgresJsDriver,
  unpreparedPostgresJsDriver,
  drizzleDriver,
  drizzlePostgresJsDriver,
  prismaDriver,
  knexDriver,
  unwrappingKnexDriver,
  rowsAloneDriver,
  bareSqlDriver,
];
