import type { Notifier, WorkerStore } from "@venturi/core";

/** The verbs of a store that workers call. */
export type WorkerVerbs<Tx = never> = WorkerStore<Tx> & Partial<Notifier>;

type Verb = Exclude<keyof WorkerVerbs, "portVersion" | "capabilities" | "~tx">;

const verbs: readonly Verb[] = [
  "startWorker",
  "stopWorker",
  "claim",
  "settle",
  "handBack",
  "extendLease",
  "complete",
  "beat",
  "findStale",
  "recover",
  "readJournal",
  "listen",
];

/** A store that does as another one does, with some verbs replaced: how tests look at calls and make them fail. */
export function wrapStore<Tx = never>(
  store: WorkerVerbs<Tx>,
  replace: (store: WorkerVerbs<Tx>) => Partial<WorkerVerbs<Tx>>,
): WorkerVerbs<Tx> {
  const { portVersion, capabilities } = store;
  const wrapped: Record<string, unknown> = { portVersion, capabilities };
  for (const verb of verbs) {
    const method: unknown = store[verb];
    if (typeof method === "function") wrapped[verb] = method.bind(store);
  }
  const plain = wrapped as unknown as WorkerVerbs<Tx>;
  return { ...plain, ...replace(plain) };
}
