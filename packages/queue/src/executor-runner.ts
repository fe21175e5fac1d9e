import { answerRows } from "@venturi/core";
import { hasMethods } from "./has-methods.ts";
import type { Runner, SqlExecutor } from "./sql-executor.ts";

export function isExecutor(value: unknown): value is SqlExecutor {
  return hasMethods(value, ["query"]);
}

/** Somebody's own way to run SQL. */
export function executorRunner(executor: SqlExecutor): Runner {
  return {
    isInTransaction: () => executor.isTransaction === true,
    async run({ text, params }) {
      return answerRows(await executor.query(text, [...params]));
    },
  };
}
