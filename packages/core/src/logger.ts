import { invalidArgument, readArgument, show } from "./errors.ts";
import { isPromise } from "./schema.ts";

/** The fields of a log record. They never hold payloads, dedup keys or credentials. */
export type LogFields = Readonly<Record<string, unknown>>;

/** What venturi tells an operator through. `console` is one; any other logger needs a thin wrapper, see {@link pinoLogger}. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

function ignore(): void {
  // Silence is the purpose.
}

/** What is needed of a pino logger or one of its children, or of another logger that takes the fields first. */
export interface PinoLike {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

/**
 * Makes a logger that writes to pino, which takes the fields before the message. Throws `invalid-argument` for what is no
 * logger of that shape.
 *
 * @example new Worker(store, { logger: pinoLogger(pino()) })
 */
export function pinoLogger(pino: PinoLike): Logger {
  checkLevels("pino", pino, "pass what pino() returned");
  return {
    debug: (message, fields = {}) => pino.debug(fields, message),
    info: (message, fields = {}) => pino.info(fields, message),
    warn: (message, fields = {}) => pino.warn(fields, message),
    error: (message, fields = {}) => pino.error(fields, message),
  };
}

/** A logger that writes nothing. */
export const silentLogger: Logger = Object.freeze({
  debug: ignore,
  info: ignore,
  warn: ignore,
  error: ignore,
});

const levels = ["debug", "info", "warn", "error"] as const;

/**
 * Wraps a logger that an application has passed, so that whatever goes wrong in it stays there: neither a full disk nor a
 * bug in the logger must stop a queue or a worker.
 *
 * Throws `invalid-argument` for what is no logger.
 */
export function toLogger(value: unknown): Logger {
  checkLevels("logger", value, "pass { debug, info, warn, error }, or pinoLogger(logger) for pino");
  return value === silentLogger ? silentLogger : safely(value as Logger);
}

function checkLevels(argument: string, value: unknown, hint: string): void {
  const isLogger = readArgument(argument, () => {
    const logger = (value ?? {}) as Partial<Logger>;
    return levels.every((level) => typeof logger[level] === "function");
  });
  if (!isLogger) throw invalidArgument(argument, `is not a logger (got ${show(value)})`, hint);
}

function safely(logger: Logger): Logger {
  const guard =
    (level: keyof Logger) =>
    (message: string, fields?: LogFields): void => {
      try {
        // Left out where there are none: the console would print "undefined".
        const returned: unknown =
          fields === undefined ? logger[level](message) : logger[level](message, fields);
        if (isPromise(returned)) Promise.resolve(returned).catch(ignore);
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
