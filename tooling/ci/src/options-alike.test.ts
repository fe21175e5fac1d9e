import { Backoff, defineTask, isVenturiError, Outcome } from "@venturi/core";
import { instrument, observeStats } from "@venturi/otel";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { drain, MemoryStore } from "@venturi/testing";
import { Worker } from "@venturi/worker";
import pg from "pg";
import * as v from "valibot";
import { afterAll, describe, expect, test } from "vitest";

/** Nobody listens there: whatever sends something fails with another error than that of a bad option. */
const connectionString = "postgres://user:password@127.0.0.1:1/nowhere";
const pool = new pg.Pool({ connectionString });
const store = new MemoryStore();
const payload = v.object({ n: v.number() });
const Task = defineTask({ kind: "task", payload });
const handler = () => Outcome.completed();

afterAll(() => pool.end());

const fail = () => {
  throw new Error("must not come out");
};
/** What may be passed by mistake, or from configuration that nobody has checked. */
const samples = new Map<string, unknown>([
  ["null", null],
  ["true", true],
  ["1", 1],
  ["0", 0],
  ["-1", -1],
  ["1.5", 1.5],
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["1n", 1n],
  ["text", "text"],
  ["empty text", ""],
  ["an object", {}],
  ["an array", []],
  ["a function", () => undefined],
  ["a symbol", Symbol("s")],
  ["what throws", new Proxy({}, { get: fail, ownKeys: fail })],
]);

const object = ["an object", "what throws"];
const duration = ["1", "0", "1.5", "Infinity"];
const callback = ["a function"];
const text = ["text"];
const flag = ["true"];

type Make = (options: never) => unknown;

/** Everything that takes options: what makes it, and which of the samples each of its options accepts. */
const owners: readonly (readonly [
  string,
  Make,
  Readonly<Record<string, readonly string[]>>,
  { readonly whole?: string; readonly given?: object; readonly names?: (option: string) => string },
])[] = [
  [
    "new PostgresStore",
    (options) => new PostgresStore(options),
    {
      pool: [],
      prefix: text,
      schema: text,
      preparedStatements: flag,
      listen: flag,
      listenConnectionString: text,
      ssl: [...flag, ...object],
      logger: [],
    },
    { given: { pool } },
  ],
  ["new PostgresStore", (options) => new PostgresStore(options), { db: [] }, {}],
  [
    "PostgresStore.connect",
    (options) => PostgresStore.connect(options),
    {
      connectionString: text,
      maxConnections: ["1"],
      signal: [],
      prefix: text,
      schema: text,
      preparedStatements: flag,
      listen: flag,
      listenConnectionString: text,
      ssl: [...flag, "an object"],
      logger: [],
    },
    { given: { connectionString } },
  ],
  [
    "new Queue",
    (options) => new Queue(pool, options),
    { prefix: text, schema: text, preparedStatements: flag, logger: [] },
    {},
  ],
  [
    "new Queue over a store",
    (options) => Reflect.construct(Queue, [store, options]),
    { prefix: [], schema: [], preparedStatements: [], logger: [] },
    {},
  ],
  [
    "new Worker",
    (options) => new Worker(store, options),
    {
      concurrency: ["1"],
      pollMax: duration,
      lease: duration,
      heartbeat: duration,
      workerTimeout: duration,
      shutdownTimeout: duration,
      backoff: [],
      jitterFraction: ["1", "0", "-1", "1.5", "Infinity"],
      backstop: ["null", "1"],
      panicPolicy: [],
      priorityRatio: ["null", "1"],
      prefetch: ["1", "0"],
      name: text,
      logger: [],
    },
    {},
  ],
  [
    "worker.register",
    (options) => new Worker(store).register(Task, handler, options),
    { cap: ["1"] },
    {},
  ],
  ["worker.run", (options) => new Worker(store).run(options), { signal: [] }, {}],
  ["drain", (options) => drain(new Worker(store), options), { signal: [] }, {}],
  [
    "defineTask",
    (options) => defineTask(options),
    {
      kind: text,
      payload: [],
      carry: [],
      priority: callback,
      dedupKey: callback,
      merge: callback,
      backoff: callback,
      lease: [...duration, ...callback],
      backstop: ["null", "1"],
    },
    { whole: "task", given: { kind: "task", payload } },
  ],
  [
    "new Backoff",
    (options) => new Backoff(options),
    { base: duration, cap: duration },
    { whole: "backoff", names: (option) => `backoff.${option}` },
  ],
  ["new MemoryStore", (options) => new MemoryStore(options), { clock: [] }, {}],
  [
    "instrument",
    (options) => instrument(options).stop(),
    {
      meterProvider: [],
      tracerProvider: [],
      traces: flag,
      metrics: flag,
      claimSpans: flag,
      runSpans: [],
    },
    {},
  ],
  [
    "observeStats",
    (options) =>
      observeStats({ stats: () => store.stats().then((it) => it.stats) }, options).stop(),
    { meterProvider: [] },
    {},
  ],
];

/** The argument that a refusal names; undefined where there is none. What else is thrown comes out. */
async function refused(make: Make, options: unknown): Promise<string | undefined> {
  try {
    await make(options as never);
  } catch (error) {
    if (!isVenturiError(error)) throw error;
    if (error.code !== "invalid-argument") return undefined;
    // "option is not what it should be: what to pass".
    expect(error.message).toMatch(/^\S+ .+: .+/);
    return error.argument;
  }
  return undefined;
}

describe.each(owners)("%s", (_, make, options, { whole = "options", given = {}, names }) => {
  test.each(Object.entries(options))(
    "%s: what it is not is refused by name",
    async (name, fine) => {
      const argument = names?.(name) ?? name;
      for (const [sample, value] of samples) {
        // A store takes one of two: without the other it says which.
        const expected = fine.includes(sample) ? undefined : name === "db" ? "pool" : argument;
        const found = await refused(make, { ...given, [name]: value });
        expect([sample, found === "db" ? "pool" : found]).toEqual([sample, expected]);
      }
      const getter = Object.defineProperty({ ...given }, name, { enumerable: true, get: fail });
      expect(await refused(make, getter)).toBe(argument);
    },
  );

  test.each(Object.keys(options))("%s: undefined is as if it was left out", async (name) => {
    expect(await refused(make, { ...given, [name]: undefined })).toBe(
      await refused(make, Object.fromEntries(Object.entries(given).filter(([it]) => it !== name))),
    );
  });

  test("what are no options are refused as such, and so is an option that there is not", async () => {
    for (const [sample, value] of samples) {
      if (sample === "an object") continue;
      expect([sample, await refused(make, value)]).toEqual([sample, whole]);
    }
    expect(await refused(make, { ...given, colour: "red" })).toBe(names?.("colour") ?? "colour");
  });
});
