import { toDatabaseError, VenturiError } from "@venturi/core";

/** Why no connection came about, and what to look at. */
export function connectFailure(error: unknown, prefix: string): VenturiError {
  const failure = toDatabaseError(error, { doing: "connect to the database", prefix });
  if (failure.code !== "database") return failure;
  const { code, message, isRetryable, sqlState } = failure;
  const told = `${message}; ${advice(sqlState)}`;
  return new VenturiError(code, told, { cause: error, isRetryable, sqlState });
}

function advice(sqlState: string | undefined): string {
  if (sqlState === undefined)
    return "look whether PostgreSQL runs at the host and port of connectionString, and can be reached from here";
  if (sqlState.startsWith("28"))
    return "look at the user and the password of connectionString, and whether the server lets them in from here";
  if (sqlState === "3D000") return "create that database, or name another in connectionString";
  return "look at the server that connectionString names";
}
