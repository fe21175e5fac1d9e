import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { optionTable, readOptions } from "./option-table.ts";
import { root } from "./paths.ts";

const page = "docs/learning/configuration.md";
const marker =
  "<!-- From here on made from the options' docstrings by `npm run reference`; never edited. -->";

interface Section {
  readonly heading: string;
  readonly intro: string;
  /** Where the options are declared: source file and interface. */
  readonly options: readonly (readonly [file: string, interfaceName: string])[];
}

const sections: readonly Section[] = [
  {
    heading: "Tasks",
    intro: "`defineTask({ … })`, see [tasks](tasks.md).",
    options: [["packages/core/src/task-spec.ts", "TaskSpec"]],
  },
  {
    heading: "Backoff",
    intro: "`new Backoff({ … })`, see [retries](retries.md).",
    options: [["packages/core/src/backoff.ts", "BackoffOptions"]],
  },
  {
    heading: "Worker",
    intro: "`new Worker(store, { … })`, see [workers](workers.md).",
    options: [["packages/worker/src/options.ts", "WorkerOptions"]],
  },
  {
    heading: "Registering",
    intro: "`worker.register(task, handler, { … })`, see [concurrency and caps](concurrency.md).",
    options: [["packages/worker/src/handler-registry.ts", "RegisterOptions"]],
  },
  {
    heading: "Running",
    intro: "`worker.run({ … })` and `worker.runOnce({ … })`, see [shutdown](shutdown.md).",
    options: [["packages/worker/src/worker.ts", "RunOptions"]],
  },
  {
    heading: "Queue",
    intro:
      "`new Queue(producer, { … })`, see [enqueueing](enqueueing.md). Over a store the names and `preparedStatements` are the store's, and are refused here.",
    options: [["packages/queue/src/options.ts", "QueueOptions"]],
  },
  {
    heading: "Enqueueing",
    intro:
      "`queue.enqueue(job, { … })`, and but for `signal` the members of an item `{ job, … }` of `enqueueMany`.",
    options: [
      ["packages/queue/src/enqueue.ts", "JobOptions"],
      ["packages/queue/src/enqueue.ts", "WaitOptions"],
    ],
  },
  {
    heading: "OpenTelemetry",
    intro:
      "`instrument({ … })`; `observeStats(queue, { … })` takes `meterProvider`. See [observability](../operations/observability.md).",
    options: [
      ["packages/otel/src/options.ts", "InstrumentOptions"],
      ["packages/otel/src/options.ts", "MeterSource"],
    ],
  },
  {
    heading: "Store",
    intro:
      "`await PostgresStore.connect({ … })` makes a pool of its own, and takes these besides those below. `new PostgresStore({ pool, … })` and `new PostgresStore({ db, … })` borrow a `pg` Pool or a Kysely instance, and take `ssl`, for listening. See [deploying](deploying.md).",
    options: [["packages/store-postgres/src/options.ts", "ConnectOptions"]],
  },
  {
    heading: "Every store",
    intro: "However it is made.",
    options: [
      ["packages/core/src/prefix.ts", "NameOptions"],
      ["packages/store-postgres/src/options.ts", "StoreOptions"],
    ],
  },
];

const ending =
  "Kept in the database, for all processes: `await store.configure({ notify })`, `true` at first.\n";

/** Problems: one where the page is not what the docstrings say. */
export async function referenceProblems(): Promise<readonly string[]> {
  const { found, wanted } = await readPage();
  return found === wanted
    ? []
    : [`${page} is not what the options' docstrings say: run \`npm run reference\``];
}

async function readPage(): Promise<{ readonly found: string; readonly wanted: string }> {
  const found = await readFile(join(root, page), "utf8");
  const [before, after] = found.split(marker);
  if (after === undefined) throw new Error(`${page} lacks the line ${marker}`);
  const parts = await Promise.all(sections.map(renderSection));
  return { found, wanted: [`${before}${marker}`, ...parts, ending].join("\n\n") };
}

async function renderSection({ heading, intro, options }: Section): Promise<string> {
  const rows = await Promise.all(
    options.map(async ([file, interfaceName]) =>
      readOptions(file, await readFile(join(root, file), "utf8"), interfaceName),
    ),
  );
  return `## ${heading}\n\n${intro}\n\n${optionTable(rows.flat())}`;
}

/** Writes the page anew; called by `npm run reference`. */
export async function writeReference(): Promise<void> {
  await writeFile(join(root, page), (await readPage()).wanted);
}
