import { isVenturiError } from "@venturi/core";

/** The code of an error of ours, any other error as it is. */
export const codeOf = (error: unknown) => (isVenturiError(error) ? error.code : error);

/** The code that a promise rejects with. */
export const catchCode = (promise: Promise<unknown>) => promise.then(() => "resolved", codeOf);
