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

/** Writes nothing. */
export const silentLogger: Logger = Object.freeze({
  debug: ignore,
  info: ignore,
  warn: ignore,
  error: ignore,
});
