import { isVenturiError, type VenturiError } from "@venturi/core";

/** The error that a promise rejects with, which must be one of venturi's. */
export async function failureOf(promise: Promise<unknown>): Promise<VenturiError> {
  const error: unknown = await promise.then(
    () => new Error("did not fail"),
    (thrown: unknown) => thrown,
  );
  if (!isVenturiError(error)) throw error;
  return error;
}
