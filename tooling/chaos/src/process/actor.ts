/** A process of the harness: does what it is asked for, over the channel to the one that started it. */
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { Labour } from "../load/labour.ts";
import { Production } from "../load/production.ts";
import { runContract } from "./contract.ts";
import type { ActorTraits, Message, Request, Verbs } from "./protocol.ts";
import { skewClock } from "./skewed-clock.ts";

function opened<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`there is no ${what} in this process`);
  return value;
}

async function withStore<T>(url: string, work: (store: PostgresStore) => Promise<T>): Promise<T> {
  const store = await PostgresStore.connect({ connectionString: url });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

function verbs(): Verbs {
  let labour: Labour | undefined;
  let production: Production | undefined;
  return {
    migrate: ({ url }) => withStore(url, (store) => store.migrate()),
    startWorker: async (setup) => {
      labour = await Labour.start(setup);
    },
    stopWorker: () => opened(labour, "worker").stop(),
    openProducer: async (setup) => {
      production = new Production(setup);
    },
    fill: ({ count }) => opened(production, "producer").fill(count),
    produce: async ({ perSecond }) => opened(production, "producer").produce(perSecond),
    endProduction: () => opened(production, "producer").end(),
    block: async ({ ms }) => {
      const until = performance.now() + ms;
      while (performance.now() < until);
    },
    cleanUp: ({ url, olderThanMs }) =>
      withStore(url, (store) =>
        new Queue(store).cleanup({ finishedBefore: new Date(Date.now() - olderThanMs) }),
      ),
    configure: ({ url, notify }) => withStore(url, (store) => store.configure({ notify })),
    contract: runContract,
    memory: async () => {
      globalThis.gc?.();
      const { heapUsed, rss } = process.memoryUsage();
      return { heapUsed, rss };
    },
  };
}

function tell(message: Message): void {
  if (process.connected) process.send?.(message);
}

const { clockSkewMs }: ActorTraits = JSON.parse(process.argv[2] ?? "");
skewClock(clockSkewMs);
const known = verbs();
// Whoever started this has gone, or lets it go.
process.on("disconnect", () => process.exit(0));
process.on("message", ({ call, verb, argument }: Request) => {
  const asked = known[verb] as (argument: unknown) => Promise<unknown>;
  asked(argument).then(
    (result) => tell({ call, result }),
    (error: unknown) =>
      tell({ call, error: error instanceof Error ? (error.stack ?? error.message) : `${error}` }),
  );
});
