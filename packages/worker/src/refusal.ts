import { isVenturiError, readDatabaseFault, type VenturiErrorCode } from "@venturi/core";
import { isRetryable, whatWasSaid } from "./trouble.ts";

/**
 * Classes of SQLSTATEs that say how the connection, its session, the role or the database stands, whatever was to be
 * written: connection, unsupported, transaction state, prepared statements, login, database, schema, rollback, rights
 * and missing objects, resources, object state, intervention, system, configuration, internal (as which poolers report
 * their own).
 */
const circumstances = new Set([
  "08",
  "0A",
  "25",
  "26",
  "28",
  "3D",
  "3F",
  "40",
  "42",
  "53",
  "55",
  "57",
  "58",
  "F0",
  "XX",
]);

/** What a store refuses without asking its database. */
const refusingCodes = new Set<VenturiErrorCode>([
  "invalid-argument",
  "serialization",
  "validation",
]);

/**
 * Whether the store has refused what was to be written: the server answered so, and not because of how things stand.
 * Nothing else is: of what never reached a server nobody knows what it would have said.
 */
export function isRefusal(error: unknown): boolean {
  if (isVenturiError(error) && refusingCodes.has(error.code)) return true;
  if (isRetryable(error)) return false;
  const { sqlState, fate } = readDatabaseFault(error);
  return sqlState !== null && fate === "refused" && !circumstances.has(sqlState.slice(0, 2));
}

/**
 * Whether a statement failed for reasons that all others share, so that it need not be split: an outage, a connection
 * that could not be made, a store that has been closed.
 */
export function hasNothingToDoWithItems(error: unknown): boolean {
  if (isRetryable(error) || (isVenturiError(error) && error.code === "closed")) return true;
  return readDatabaseFault(error).fate !== "refused";
}

/** Classes of SQLSTATEs that are about a value, whoever else brings such a one: data, limits of the program. */
const aboutValues = new Set(["22", "54"]);

/** Whether a refusal is for a value of this very item, not for what may refuse any. */
export function isAboutValues(error: unknown): boolean {
  if (!isRefusal(error)) return false;
  const { sqlState } = readDatabaseFault(error);
  return sqlState === null || aboutValues.has(sqlState.slice(0, 2));
}

/** Two errors of one nature say the same. Without an answer of the server all do, since their texts may hold anything. */
export function natureOf(error: unknown): string {
  const { sqlState } = readDatabaseFault(error);
  return isRefusal(error) ? `${sqlState} ${whatWasSaid(error)}` : `${sqlState}`;
}
