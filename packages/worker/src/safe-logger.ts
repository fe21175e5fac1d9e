import { isPromise, type LogFields, type Logger } from "@venturi/core";

/** A logger whose faults do not reach the caller, also not later: a full disk must not end a worker. */
export function safeLogger(logger: Logger): Logger {
  const guard =
    (level: keyof Logger) =>
    (message: string, fields?: LogFields): void => {
      try {
        // The console would print what is not there.
        const returned: unknown =
          fields === undefined ? logger[level](message) : logger[level](message, fields);
        if (isPromise(returned)) Promise.resolve(returned).catch(() => undefined);
      } catch {
        // There is no better place to report this to.
      }
    };
  return {
    debug: guard("debug"),
    info: guard("info"),
    warn: guard("warn"),
    error: guard("error"),
  };
}

/** A logger that adds the same fields to every record. */
export function loggerWith(logger: Logger, common: LogFields): Logger {
  const add =
    (level: keyof Logger) =>
    (message: string, fields?: LogFields): void =>
      logger[level](message, { ...common, ...fields });
  return { debug: add("debug"), info: add("info"), warn: add("warn"), error: add("error") };
}
