import type { LogFields, Logger } from "@venturi/core";

/** A logger that adds the same fields to every record. */
export function loggerWith(logger: Logger, common: LogFields): Logger {
  const add =
    (level: keyof Logger) =>
    (message: string, fields?: LogFields): void =>
      logger[level](message, { ...common, ...fields });
  return { debug: add("debug"), info: add("info"), warn: add("warn"), error: add("error") };
}
