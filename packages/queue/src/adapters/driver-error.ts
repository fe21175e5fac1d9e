import { readMember } from "@venturi/core";

/** What a driver said, where the library around it hides or rewrites that; `cause` is what the library threw. */
export class DriverError extends Error {
  /** The SQLSTATE, or the name of a network error. */
  readonly code: string;
  readonly severity = "ERROR";
  readonly detail: string | undefined;

  constructor(
    message: string,
    from: { readonly code: string; readonly detail?: string | undefined; readonly cause: unknown },
  ) {
    super(message, { cause: from.cause });
    this.name = "DriverError";
    this.code = from.code;
    this.detail = from.detail;
  }
}

/** A member of whatever was thrown, where it is text. */
export function textMember(value: unknown, name: string): string | undefined {
  const found = readMember(value, name);
  return typeof found === "string" ? found : undefined;
}
