import { isVenturiError, VenturiError } from "./errors.ts";
import { isArray } from "./is-array.ts";
import { readMember } from "./read-member.ts";
import { isRetryableSqlState } from "./sql-state.ts";

/**
 * What became of the statement that failed.
 *
 * - `not-sent`: the server never got it.
 * - `refused`: nothing was written. The server answered with an error; or, where there is no SQLSTATE, something else
 *   threw, perhaps before anything was sent.
 * - `unknown`: the connection was lost while the statement was on its way; it may have been carried out.
 */
export type StatementFate = "not-sent" | "refused" | "unknown";

/** What an error of a database driver says, whichever driver threw it and whatever wraps it. */
export interface DatabaseFault {
  /** The server's SQLSTATE; null where the server did not answer. */
  readonly sqlState: string | null;
  readonly isRetryable: boolean;
  readonly fate: StatementFate;
  /** The driver's message without connection parameters. */
  readonly message: string;
  /** The server's DETAIL. */
  readonly detail: string | null;
}

/** Reads an error of any PostgreSQL driver through the wrappers that query builders put around it. Never throws. */
export function readDatabaseFault(error: unknown): DatabaseFault {
  const causes = causeChain(error);
  for (const cause of causes) {
    const sqlState = sqlStateOf(cause);
    if (sqlState === null) continue;
    return {
      sqlState,
      isRetryable: isRetryableSqlState(sqlState),
      fate: fateOf(sqlState),
      message: messageOf(cause),
      detail: text(cause["detail"]),
    };
  }
  for (const cause of causes) {
    const network = networkFault(cause);
    if (network === null) continue;
    return { ...network, sqlState: null, message: messageOf(cause), detail: null };
  }
  const message = causes[0] === undefined ? printable(error) : messageOf(causes[0]);
  return { sqlState: null, isRetryable: false, fate: "refused", message, detail: null };
}

const lostStates = new Set(["40003", "57P01", "57P02"]);
const unconnectedStates = new Set(["57P03", "08001", "08003", "08004", "53300", "3D000"]);

function fateOf(sqlState: string): StatementFate {
  if (unconnectedStates.has(sqlState) || sqlState.startsWith("28")) return "not-sent";
  if (lostStates.has(sqlState) || sqlState.startsWith("08")) return "unknown";
  return "refused";
}

/** States of a database that lacks what the migrations make: function, table, schema. */
const missingStates = new Set(["42883", "42P01", "3F000"]);

/** A statement prepared under a name is known to one server connection, and a pooler may use another. */
const preparedStates = new Set(["26000", "42P05"]);

/** What {@link toDatabaseError} says about the statement that failed. */
export interface FailedStatement {
  /** What was being done, as in "enqueue 3 jobs". */
  readonly doing: string;
  /** The prefix whose tables were used: a missing one of these means that nobody has migrated. */
  readonly prefix: string;
}

/**
 * The error of a driver as a `VenturiError`: `not-migrated` where venturi's tables are missing, else `database`
 * with `sqlState` and `isRetryable`. What is a `VenturiError` already stays as it is.
 */
export function toDatabaseError(error: unknown, statement: FailedStatement): VenturiError {
  if (isVenturiError(error)) return error;
  const fault = readDatabaseFault(error);
  const { sqlState } = fault;
  if (sqlState !== null && missingStates.has(sqlState) && isOurs(fault, statement.prefix)) {
    return new VenturiError(
      "not-migrated",
      `could not ${statement.doing}: ${fault.message}; run migrate on this database, with the same prefix and schema`,
      { cause: error, sqlState },
    );
  }
  const advice =
    sqlState !== null && preparedStates.has(sqlState)
      ? "; behind a pooler in transaction mode pass preparedStatements: false"
      : "";
  return new VenturiError("database", `could not ${statement.doing}: ${fault.message}${advice}`, {
    cause: error,
    isRetryable: fault.isRetryable,
    sqlState: sqlState ?? undefined,
  });
}

/** Whether what is missing is venturi's, and not something that a trigger of somebody else asks for. */
function isOurs(fault: DatabaseFault, prefix: string): boolean {
  return fault.sqlState === "3F000" || fault.message.includes(`${prefix}_`);
}

type NetworkFault = Pick<DatabaseFault, "isRetryable" | "fate">;

const connectCodes = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EADDRNOTAVAIL",
  "CONNECT_TIMEOUT",
  "CONNECTION_CONNECT_TIMEOUT",
]);
const lostCodes = new Set([
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "ENETDOWN",
  "ENETRESET",
  "CONNECTION_CLOSED",
  "CONNECTION_DESTROYED",
]);

/** Drivers name these by their text alone. */
const closedText = /after calling end on the pool|client was closed|already been destroyed/i;
const unsentText =
  /timeout exceeded when trying to connect|due to connection timeout|^timeout expired$|not queryable/i;
const lostText =
  /connection (was |is |has been |got )?(terminated|closed|lost|reset|ended|destroyed)|query read timeout|socket hang up|socket (has been |was )?(closed|ended)|broken pipe/i;

function networkFault(cause: Fields): NetworkFault | null {
  const code = text(cause["code"]) ?? "";
  const message = messageOf(cause);
  if (closedText.test(message) || code === "CONNECTION_ENDED") {
    return { isRetryable: false, fate: "not-sent" };
  }
  const syscall = text(cause["syscall"]);
  if (connectCodes.has(code) || syscall === "connect" || syscall === "getaddrinfo") {
    return { isRetryable: true, fate: "not-sent" };
  }
  if (unsentText.test(message)) return { isRetryable: true, fate: "not-sent" };
  if (lostCodes.has(code) || lostText.test(message)) return { isRetryable: true, fate: "unknown" };
  return null;
}

/** The members of an error, none of which can be relied on. */
type Fields = Readonly<Record<string, unknown>>;

const maxDepth = 10;

/** The error and what it was caused by, outermost first. */
function causeChain(error: unknown): Fields[] {
  const chain: Fields[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null || chain.length >= maxDepth) return;
    const fields = value as Fields;
    if (chain.includes(fields)) return;
    chain.push(fields);
    visit(readMember(fields, "cause"));
    const errors = readMember(fields, "errors");
    if (isArray(errors)) for (let n = 0; n < maxDepth; n += 1) visit(readMember(errors, n));
  };
  visit(error);
  return chain.map(snapshot);
}

const members = ["code", "sqlState", "severity", "errno", "syscall", "message", "detail", "errors"];

function snapshot(error: Fields): Fields {
  return Object.fromEntries(members.map((name) => [name, readMember(error, name)]));
}

function sqlStateOf(fields: Fields): string | null {
  const declared = text(fields["sqlState"]);
  if (declared !== null && sqlStateShape.test(declared)) return declared;
  const code = text(fields["code"]);
  if (code === null || !sqlStateShape.test(code)) return null;
  if (prismaCode.test(code)) return null;
  // EPIPE and its like have the shape of a SQLSTATE, but come from the operating system.
  if (fields["errno"] !== undefined || fields["syscall"] !== undefined) return null;
  return /\d/.test(code) || text(fields["severity"]) !== null ? code : null;
}

const sqlStateShape = /^[0-9A-Z]{5}$/;
/** Prisma's own codes have the same shape; of PostgreSQL's, P0001 and its like begin with P. */
const prismaCode = /^P[1-9]\d{3}$/;

const maxMessageLength = 1000;

function messageOf(fields: Fields): string {
  const message = text(fields["message"]) ?? "";
  if (message !== "") return printable(message);
  // Node reports one failed connection attempt per address, in an error without a message of its own.
  const errors = fields["errors"];
  const first: unknown = isArray(errors) ? readMember(errors, 0) : undefined;
  return printable(text(readMember(first, "message")) || text(fields["code"]) || "no message");
}

/** Cut to a length that logs bear, and without the user and password of a connection string. */
function printable(value: unknown): string {
  const message = typeof value === "string" ? value : `something else was thrown (${typeof value})`;
  return message
    .slice(0, maxMessageLength)
    .replace(/\/\/[^\s/]*@/g, "//…@")
    .replace(/\b(password|passwd|pwd)\s*=\s*\S+/gi, "$1=…");
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
