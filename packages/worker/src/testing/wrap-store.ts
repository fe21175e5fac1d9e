import type { Notifier, WorkerStore } from "@venturi/core";

/** The verbs of a store that workers call. */
export type WorkerVerbs = WorkerStore & Partial<Notifier>;

type Verb = Exclude<keyof WorkerVerbs, "portVersion" | "capabilities" | "~tx">;

const verbs: readonly Verb[] = [
  "startWorker",
  "stopWorker",
  "claim",
  "settle",
  "handBack",
  "beat",
  "findStale",
  "recover",
  "readJournal",
  "listen",
];

/** A store that does as another one does, with some verbs replaced: how tests look at calls and make them fail. */
export function wrapStore(
  store: WorkerStore<never> & Partial<Notifier>,
  replace: (store: WorkerVerbs) => Partial<WorkerVerbs>,
): WorkerVerbs {
  const { portVersion, capabilities } = store;
  const wrapped: Record<string, unknown> = { portVersion, capabilities };
  for (const verb of verbs) {
    const method: unknown = store[verb];
    if (typeof method === "function") wrapped[verb] = method.bind(store);
  }
  const plain = wrapped as unknown as WorkerVerbs;
  return { ...plain, ...replace(plain) };
}
