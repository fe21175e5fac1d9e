import { readDatabaseFault, toDatabaseError } from "./database-error.ts";
import { isVenturiError, VenturiError } from "./errors.ts";
import { fromUuid, type JobId } from "./job-id.ts";
import type { EnqueueJob } from "./store.ts";

/** SQLSTATEs that the enqueue function of the migrations raises itself. */
const idConflictState = "VT001";
const refusedState = "VT002";
const changedState = "VT003";
/** Another call with the same id was under way, and has been committed: as a job, or as what a merge took in. */
const uniqueViolation = "23505";
const uniqueIds = ["jobs_pkey", "journal_incoming_idx"];
/** Somebody's transaction has not ended in time: the function names it, but for one that has the same id. */
const lockNotAvailable = "55P03";

/**
 * What a driver threw at an enqueue statement as a `VenturiError`: `id-conflict`, `enqueue-unknown` with the ids to
 * repeat it with where the connection was lost on the way, `not-migrated`, else `database`.
 */
export function toEnqueueError(
  error: unknown,
  statement: { readonly jobs: readonly EnqueueJob[]; readonly prefix: string },
): VenturiError {
  if (isVenturiError(error)) return error;
  const { jobs, prefix } = statement;
  const doing = `enqueue ${jobs.length === 1 ? "a job" : `${jobs.length} jobs`}`;
  const fault = readDatabaseFault(error);
  if (fault.sqlState === idConflictState) {
    const id = readId(fault.detail);
    return new VenturiError(
      "id-conflict",
      `could not ${doing}: the id ${id ?? "given"} belongs to a job of another kind or key; give each job an id of its own`,
      { cause: error, sqlState: fault.sqlState, id },
    );
  }
  if (fault.sqlState === refusedState) {
    return new VenturiError(
      "invalid-argument",
      `could not ${doing}: ${fault.message}; the database may be at another version than this producer`,
      { cause: error, argument: "job", sqlState: fault.sqlState },
    );
  }
  if (fault.sqlState === changedState) {
    return new VenturiError(
      "merge",
      `could not ${doing}: the pending job that a merge was decided about has changed; enqueue again, and it is decided anew`,
      {
        cause: error,
        sqlState: fault.sqlState,
        isRetryable: true,
        ids: (fault.detail?.match(uuidPattern) ?? []).map(fromUuid),
      },
    );
  }
  const isNamed = fault.message.includes("and is still open");
  if (fault.sqlState === lockNotAvailable && !isNamed && jobs.some((job) => job.repeatable)) {
    return new VenturiError(
      "database",
      `could not ${doing}: ${fault.message}; another call with the same id may be in a transaction that is still open`,
      { cause: error, sqlState: fault.sqlState, isRetryable: true },
    );
  }
  const isKnown = uniqueIds.some((name) => fault.message.includes(`${prefix}_${name}`));
  if (fault.sqlState === uniqueViolation && isKnown) {
    return new VenturiError(
      "database",
      `could not ${doing}: another call with the same id was under way; repeat it, and it finds the job`,
      { cause: error, sqlState: fault.sqlState, isRetryable: true },
    );
  }
  if (fault.fate === "unknown")
    return enqueueUnknown(
      jobs.map(({ id }) => id),
      error,
    );
  return toDatabaseError(error, { doing, prefix });
}

/** `enqueue-unknown`: nobody knows whether the jobs were stored, but the same ids store them once. */
export function enqueueUnknown(ids: readonly JobId[], cause: unknown): VenturiError {
  const { message, sqlState } = readDatabaseFault(cause);
  const jobs = ids.length === 1 ? `job ${ids[0]}` : `${ids.length} jobs`;
  return new VenturiError(
    "enqueue-unknown",
    `the connection was lost while enqueueing ${jobs} (${message}); repeat the call with the same id, it stores each job once`,
    { cause, sqlState: sqlState ?? undefined, id: ids.length === 1 ? ids[0] : undefined, ids },
  );
}

function readId(detail: string | null): JobId | undefined {
  const uuid = detail?.match(uuidPattern)?.[0];
  return uuid === undefined ? undefined : fromUuid(uuid);
}

const uuidPattern = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;
