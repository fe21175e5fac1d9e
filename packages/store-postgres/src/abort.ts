/**
 * What some work comes to, or a rejection with the signal's reason as soon as it aborts. Nothing is begun where it has
 * aborted already; work under way goes on, and its outcome is no longer looked at.
 */
export function abortable<T>(begin: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return begin();
  if (signal.aborted) return Promise.reject(signal.reason);
  const work = begin();
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
