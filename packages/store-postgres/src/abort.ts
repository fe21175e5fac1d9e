import { AbortWatch } from "@venturi/core";

/**
 * Begins work and settles as it does, or rejects with the signal's reason as soon as the signal aborts. If the signal has
 * aborted already, nothing is begun. Work under way goes on after an abort; its outcome is ignored.
 */
export type Abortable = <T>(begin: () => Promise<T>, signal: AbortSignal | undefined) => Promise<T>;

/** For calls that may share signals: each signal gets one listener. */
export function createAbortable(): Abortable {
  const aborts = new AbortWatch();
  return (begin, signal) => {
    if (signal === undefined) return begin();
    if (signal.aborted) return Promise.reject(signal.reason);
    const work = begin();
    return new Promise((resolve, reject) => {
      const stopWatching = aborts.watch(signal, () => reject(signal.reason));
      work.then(resolve, reject).finally(stopWatching);
    });
  };
}
