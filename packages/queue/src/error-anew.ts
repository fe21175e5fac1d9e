import { VenturiError } from "@venturi/core";

/**
 * The same error made anew, with a stack that begins at whoever calls this. Made inside a wait, or shared by all calls
 * of a statement, an error does not say which call of the application it rejects.
 */
export function errorAnew(error: VenturiError, message = error.message): VenturiError {
  const { code, name, isRetryable, argument, path, issues, sqlState, id, ids } = error;
  const anew = new VenturiError(code, message, {
    ...("cause" in error ? { cause: error.cause } : {}),
    isRetryable,
    argument,
    path,
    issues,
    sqlState,
    id,
    ids,
  });
  if (name !== anew.name) anew.name = name;
  // Not every engine has it.
  const { captureStackTrace } = Error as unknown as { captureStackTrace?: CaptureStackTrace };
  captureStackTrace?.(anew, errorAnew);
  return anew;
}

type CaptureStackTrace = (error: Error, above: unknown) => void;
