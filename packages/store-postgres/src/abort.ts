import { AbortWatch } from "@venturi/core";

/**
 * What some work comes to, or a rejection with the signal's reason as soon as it aborts. Nothing is begun where it has
 * aborted already; work under way goes on, and its outcome is no longer looked at.
 */
export type Abortable = <T>(begin: () => Promise<T>, signal: AbortSignal | undefined) => Promise<T>;

/** Of calls that may share signals, each of which is listened to once. */
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
