import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { diag } from "@opentelemetry/api";
import type { Events } from "@venturi/core";

/** Ends what was begun; more than once does nothing. */
export type Stop = () => void;

/** Hears a channel of venturi. What a listener throws is a fault of the instrumentation: it must not end the process. */
export function listen<Name extends keyof Events>(
  name: Name,
  onEvent: (event: Events[Name]) => void,
): Stop {
  const listener = (message: unknown): void => {
    try {
      onEvent(message as Events[Name]);
    } catch (error) {
      diag.error(`@venturi/otel: an event of ${name} could not be recorded`, error);
    }
  };
  subscribe(name, listener);
  return () => void unsubscribe(name, listener);
}
