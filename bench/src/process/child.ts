/** A process of one system: does what the harness asks for, over the channel between them. */
import { loadSystem } from "../systems/load.ts";
import type { System } from "../systems/system.ts";
import { now } from "./clock.ts";
import { Labour } from "./labour.ts";
import { Production } from "./production.ts";
import type { Message, ProcessTarget, Request, Verbs } from "./protocol.ts";

function tell(message: Message): void {
  process.send?.(message);
}

/** What was opened before it can be used. */
function opened<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`there is no ${what} in this process`);
  return value;
}

function verbs(system: System, url: string): Verbs {
  let production: Production | undefined;
  let labour: Labour | undefined;
  const producer = () => opened(production, "producer");
  return {
    settings: async ({ variant, concurrency }) => system.settings(variant, concurrency),
    prepare: () => system.prepare(url),
    openProducer: async ({ variant }) => {
      production = await Production.open(system, url, variant);
    },
    closeProducer: () => producer().close(),
    fill: (batch) => producer().fill(batch),
    feed: async (request) => producer().feed(request),
    consumed: async (handled) => producer().consumed(handled),
    endFeed: () => producer().endFeed(),
    produceAtRate: (request) => producer().produceAtRate(request),
    enqueue: (request) => producer().enqueue(request),
    startWorker: async (options) => {
      const started = await Labour.start(system, url, options, (handled) => tell({ handled }));
      labour = started.labour;
      return started.span;
    },
    stopWorker: () => opened(labour, "worker").stop(),
    timerLoops: async ({ loops, timerMs, ms }) => {
      let turns = 0;
      const startedAt = now();
      const loop = async () => {
        while (now() - startedAt < ms) {
          await new Promise((resolve) => setTimeout(resolve, timerMs));
          turns += 1;
        }
      };
      await Promise.all(Array.from({ length: loops }, loop));
      return turns / ((now() - startedAt) / 1_000);
    },
    memory: async () => ({ rssBytes: process.memoryUsage.rss() }),
  };
}

async function main(): Promise<void> {
  const target = JSON.parse(process.argv[2] ?? "") as ProcessTarget;
  const known = verbs(await loadSystem(target.system), target.url);
  process.on("disconnect", () => process.exit(1));
  process.on("message", ({ call, verb, argument }: Request) => {
    const asked = known[verb] as (argument: unknown) => Promise<unknown>;
    asked(argument).then(
      (result) => tell({ call, result }),
      (error: unknown) =>
        tell({ call, error: error instanceof Error ? (error.stack ?? error.message) : `${error}` }),
    );
  });
  tell({ call: 0, result: null });
}

void main();
