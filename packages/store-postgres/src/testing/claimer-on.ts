import { silentLogger } from "@venturi/core";
import { Claimer } from "../claimer.ts";
import { Database } from "../database.ts";
import { Kinds } from "../kinds.ts";
import type { PgPoolLike } from "../pg-like.ts";
import { pgSource } from "../pg-source.ts";
import type { WalkBudget } from "../walk-budget.ts";
import { names } from "./store-fixture.ts";

/** A claimer without a store around it, on a clock of the test's own. */
export function claimerOn(pool: PgPoolLike, now: () => number, budget?: WalkBudget): Claimer {
  const options = { preparedStatements: true, owned: false, logger: silentLogger };
  const database = new Database(pgSource(pool, options), names.prefix, silentLogger);
  return new Claimer(database, new Kinds(database, names), names, now, budget);
}
