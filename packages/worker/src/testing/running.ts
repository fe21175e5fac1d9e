import type { RunReport } from "../worker.ts";

interface Runnable {
  run(options: { readonly signal: AbortSignal }): Promise<RunReport>;
}

/** Runs workers while `body` goes on, stops them afterwards, and returns what each reported. */
export async function running(
  workers: Runnable | readonly Runnable[],
  body: (controller: AbortController) => Promise<void>,
): Promise<RunReport[]> {
  const controller = new AbortController();
  const list: readonly Runnable[] = "run" in workers ? [workers] : workers;
  const ended = Promise.all(list.map((worker) => worker.run({ signal: controller.signal })));
  // A worker that fails to start ends the test at once.
  const failed = ended.then(
    () => new Promise<never>(() => undefined),
    (error: unknown) => Promise.reject(error),
  );
  try {
    await Promise.race([body(controller), failed]);
  } finally {
    controller.abort();
  }
  return ended;
}
