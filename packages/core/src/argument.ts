import { invalidArgument, readArgument } from "./errors.ts";

/**
 * Refuses what is not an object, members that nobody reads (a misspelt option does nothing), and those that throw when
 * they are read. Throws `invalid-argument` that names `argument` or the member; `whose` completes "is not an option of".
 */
export function checkMembers(
  argument: string,
  value: unknown,
  members: readonly string[],
  whose: string,
): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalidArgument(argument, "must be an object", `its members are ${members.join(", ")}`);
  }
  for (const name of Object.keys(value)) {
    readArgument(name, () => Reflect.get(value, name));
    if (members.includes(name)) continue;
    const ours = otherNames.get(name) ?? "";
    const hint = members.includes(ours) ? ` (what it is elsewhere is \`${ours}\` here)` : "";
    throw invalidArgument(name, `is not an option of ${whose}${hint}`, `use ${members.join(", ")}`);
  }
}

/** What some options are called by other queues. */
const otherNames = new Map([
  ["attempts", "backstop"],
  ["maxAttempts", "backstop"],
  ["retryLimit", "backstop"],
  ["jobKey", "dedupKey"],
  ["singletonKey", "dedupKey"],
]);

/** Checks a signal; throws `invalid-argument`. */
export function toSignal(signal: AbortSignal | undefined): AbortSignal | undefined {
  const isSignal = readArgument("signal", () => {
    const { addEventListener, throwIfAborted } = (signal ?? {}) as Record<string, unknown>;
    return typeof addEventListener === "function" && typeof throwIfAborted === "function";
  });
  if (signal === undefined || isSignal) return signal;
  throw invalidArgument("signal", "is not an AbortSignal", "pass controller.signal");
}

/**
 * Refuses a `pg` pool or client that asks for binary answers: no query can ask it for text instead. Throws
 * `invalid-argument`.
 */
export function refuseBinary(argument: string, connection: object): void {
  const { binary, options } = connection as Readonly<Record<string, unknown>>;
  const settings = (options ?? {}) as Readonly<Record<string, unknown>>;
  if (binary !== true && settings["binary"] !== true) return;
  throw invalidArgument(argument, "asks for binary answers", "make it without `binary: true`");
}

/** The signal of a call that takes nothing else; throws `invalid-argument`. */
export function readSignal(
  options: { readonly signal?: AbortSignal | undefined },
  whose: string,
): AbortSignal | undefined {
  return readArgument("options", () => {
    checkMembers("options", options, ["signal"], whose);
    return toSignal(options.signal);
  });
}
