import type { Stop } from "./listen.ts";

/** Something that records until it is stopped. */
export interface Instrumentation {
  /** Stops recording; open spans are ended. */
  stop(): void;
  [Symbol.dispose](): void;
}

export function stopping(stops: readonly Stop[]): Instrumentation {
  const stop = (): void => {
    for (const each of stops) each();
  };
  return { stop, [Symbol.dispose]: stop };
}
