import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { EnqueueEvent } from "@venturi/core";

/** Collects what is published about enqueueing while `body` runs; `onEvent` sees each message as it is published. */
export async function heardWhile(
  body: () => Promise<unknown>,
  onEvent: (event: EnqueueEvent) => void = () => undefined,
): Promise<EnqueueEvent[]> {
  const heard: EnqueueEvent[] = [];
  const listener = (message: unknown): void => {
    heard.push(message as EnqueueEvent);
    onEvent(message as EnqueueEvent);
  };
  subscribe("venturi:enqueue", listener);
  try {
    await body();
  } finally {
    unsubscribe("venturi:enqueue", listener);
  }
  return heard;
}
