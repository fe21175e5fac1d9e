import { pooledStoreOptions } from "@venturi-tooling/testing/pooler";
import { beforeEach, vi } from "vitest";
import { poolerException } from "./pooler-exceptions.ts";

/*
 * Before each test file where the tests go through a pooler: stores, queues and workers that say nothing of it get the
 * options that the documentation tells to pass there. Without a pooler this file is not loaded.
 */

const mode = process.env["VENTURI_POOLER"];

interface Given {
  readonly listen?: boolean | undefined;
  readonly listenConnectionString?: string | undefined;
  readonly pool?: { readonly options?: { readonly connectionString?: string } } | undefined;
}

type Options = typeof import("../../../packages/store-postgres/src/options.ts");
type Source = typeof import("../../../packages/store-postgres/src/pg-source.ts");
type QueueOptions = typeof import("../../../packages/queue/src/options.ts");
type WorkerOptions = typeof import("../../../packages/worker/src/options.ts");

vi.mock("../../../packages/store-postgres/src/options.ts", async (original) => {
  const module = await original<Options>();
  const resolveOptions: Options["resolveOptions"] = (options, own) => {
    const resolved = module.resolveOptions(options, own);
    const { pool, listen, listenConnectionString }: Given = options;
    return {
      ...resolved,
      ...pooledStoreOptions(pool?.options?.connectionString),
      ...(listen === undefined ? {} : { listen }),
      ...(listenConnectionString === undefined ? {} : { listenConnectionString }),
    };
  };
  return { ...module, resolveOptions };
});

// Also beneath the options, where some tests begin.
vi.mock("../../../packages/store-postgres/src/pg-source.ts", async (original) => {
  const module = await original<Source>();
  const preparedStatements = mode === "direct";
  const pgSource: Source["pgSource"] = (pool, options) =>
    module.pgSource(pool, { ...options, preparedStatements });
  const pgTransaction: Source["pgTransaction"] = (client) =>
    module.pgTransaction(client, preparedStatements);
  return mode === "direct" ? module : { ...module, pgSource, pgTransaction };
});

vi.mock("../../../packages/queue/src/options.ts", async (original) => {
  const module = await original<QueueOptions>();
  const resolveQueueOptions: QueueOptions["resolveQueueOptions"] = (options = {}) => {
    const resolved = module.resolveQueueOptions(options);
    return { ...resolved, preparedStatements: options.preparedStatements ?? mode === "direct" };
  };
  return { ...module, resolveQueueOptions };
});

vi.mock("../../../packages/worker/src/options.ts", async (original) => {
  const module = await original<WorkerOptions>();
  const resolveWorkerOptions: WorkerOptions["resolveWorkerOptions"] = (options = {}) =>
    module.resolveWorkerOptions(
      mode === "poll" && options !== null && options.pollMax === undefined
        ? { ...options, pollMax: 250 }
        : options,
    );
  return { ...module, resolveWorkerOptions };
});

beforeEach(({ task, skip }) => {
  const exception = poolerException(task.file.filepath, task.fullTestName, mode);
  if ((exception !== undefined) !== (mode === "direct")) skip(exception?.why);
});
