import { channel } from "node:diagnostics_channel";
import { diag } from "@opentelemetry/api";
import type { Stop } from "./listen.ts";

/** What would be doubled if it were recorded twice. */
type Recorded = "spans" | "metrics";

/**
 * Begins to record, unless this process records the same already, also through another copy of this package: then it
 * only warns. What has been stopped may begin again.
 */
export function recordOnce(what: Recorded, begin: () => readonly Stop[]): readonly Stop[] {
  // Every recording listens to this channel, which is one object for the whole process.
  const place = channel("venturi:run") as object as { [mark: symbol]: object | undefined };
  const mark = Symbol.for(`@venturi/otel ${what}`);
  if (place[mark] !== undefined) {
    diag.warn(
      `@venturi/otel: ${what} are recorded already, so this call of instrument records none; stop the first before`,
    );
    return [];
  }
  const stops = begin();
  place[mark] = stops;
  return [
    ...stops,
    () => {
      if (place[mark] === stops) place[mark] = undefined;
    },
  ];
}
