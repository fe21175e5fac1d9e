import type { MaybePromise } from "@venturi/core";
import { Bench, type Topic } from "./bench.ts";
import { claimTopic } from "./claim.ts";
import { type ContractCase, type ContractSubject, missingNeed } from "./contract.ts";
import { enqueueTopic } from "./enqueue.ts";
import { leaseTopic } from "./lease.ts";
import { mergeTopic } from "./merge.ts";
import { notifyTopic } from "./notify.ts";
import { operateTopic } from "./operate.ts";
import { settleTopic } from "./settle.ts";
import { transactionTopic } from "./transactions.ts";

/** In the order in which an adapter is best written. */
const topics: readonly Topic[] = [
  enqueueTopic,
  claimTopic,
  settleTopic,
  operateTopic,
  mergeTopic,
  leaseTopic,
  notifyTopic,
  transactionTopic,
];

/**
 * The cases that every store passes, for any test runner. `makeStore` is called for each: the store that it returns
 * must hold nothing.
 *
 * @example
 * ```ts
 * for (const { topic, name, run } of storeContract(() => ({ store: new MyStore() }))) {
 *   it(`${topic}: ${name}`, (context) => run(context));
 * }
 * ```
 */
export function storeContract<Tx>(
  makeStore: () => MaybePromise<ContractSubject<Tx>>,
): readonly ContractCase[] {
  return topics.flatMap(({ topic, checks }) =>
    checks.map(({ name, needs = [], check }) => ({
      topic,
      name,
      needs,
      run: async (context) => {
        const subject = await makeStore();
        try {
          const missing = missingNeed(subject, needs);
          // Its transactions reach only the store that they come from.
          if (missing === null) await check(new Bench(subject as ContractSubject<unknown>));
          else context?.skip?.(missing);
          return missing;
        } finally {
          await subject.close?.();
        }
      },
    })),
  );
}
