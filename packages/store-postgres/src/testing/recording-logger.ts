import type { LogFields, Logger } from "@venturi/core";

export interface LogRecord {
  readonly level: keyof Logger;
  readonly message: string;
  readonly fields: LogFields;
}

/** A logger that keeps what it is told. */
export function recordingLogger(): { readonly logger: Logger; readonly records: LogRecord[] } {
  const records: LogRecord[] = [];
  const at =
    (level: keyof Logger) =>
    (message: string, fields: LogFields = {}): void => {
      records.push({ level, message, fields });
    };
  return {
    logger: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") },
    records,
  };
}
