import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Events } from "@venturi/core";

type Name = keyof Events;
type Heard = { [N in Name]: Events[N] & { readonly channel: N } }[Name];

const names: readonly Name[] = [
  "venturi:enqueue",
  "venturi:claim",
  "venturi:run",
  "venturi:settle",
  "venturi:recover",
  "venturi:worker",
];

/** Collects what is published while `body` runs, in order; `onEvent` sees each message as it is published. */
export async function heardWhile(
  body: (heard: readonly Heard[]) => Promise<unknown>,
  onEvent: (event: Heard) => void = () => undefined,
): Promise<Heard[]> {
  const heard: Heard[] = [];
  const listener = (message: unknown, channel: unknown): void => {
    const event = Object.assign({ channel }, message) as Heard;
    heard.push(event);
    onEvent(event);
  };
  for (const name of names) subscribe(name, listener);
  try {
    await body(heard);
  } finally {
    for (const name of names) unsubscribe(name, listener);
  }
  return heard;
}

/** The events of one channel. */
export function on<N extends Name>(heard: readonly Heard[], name: N): Events[N][] {
  return heard.filter(({ channel }) => channel === name) as unknown as Events[N][];
}
