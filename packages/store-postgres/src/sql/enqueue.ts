import { enqueueCall } from "@venturi/core";
import type { Names } from "../names.ts";
import { type Statement, statement } from "./statement.ts";

/**
 * Stores jobs through the function that every producer calls; see `migrations/0001-initial/enqueue.ts`.
 * Parameters: 1 JSON array of jobs.
 */
export function enqueue(n: Names): Statement {
  return statement("enqueue", enqueueCall(n.of("enqueue_v1")));
}
