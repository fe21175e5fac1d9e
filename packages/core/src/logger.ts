/** Facts that belong to a log record; never payloads, keys or credentials. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Where venturi writes what an operator should know. `console` fits, and so does a thin wrapper of any logger. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

function ignore(): void {
  // Silence is the purpose.
}

/** As much of a pino logger as is needed, of its children too; loggers that take the fields first fit alike. */
export interface PinoLike {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

/**
 * A logger that writes to pino, which takes the fields before the message.
 *
 * @example new Worker(store, { logger: pinoLogger(pino()) })
 */
export function pinoLogger(pino: PinoLike): Logger {
  return {
    debug: (message, fields = {}) => pino.debug(fields, message),
    info: (message, fields = {}) => pino.info(fields, message),
    warn: (message, fields = {}) => pino.warn(fields, message),
    error: (message, fields = {}) => pino.error(fields, message),
  };
}

/** Writes nothing. */
export const silentLogger: Logger = Object.freeze({
  debug: ignore,
  info: ignore,
  warn: ignore,
  error: ignore,
});
