import { Backoff, defineTask, isVenturiError, Outcome } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterEach, describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { running } from "./testing/running.ts";
import { deferred, until } from "./testing/signals.ts";

const database = await testDatabase();
const store = new PostgresStore({ pool: database.pool });
const queue = new Queue(store);
const payload = v.object({ n: v.number() });

expectNoWarnings();
afterEach(() => expectInvariants(database.pool));

type N = { readonly n: number };

const outcomes = async (id: string) => (await queue.journal(id)).map(({ outcome }) => outcome);
const lastNote = async (id: string) => (await queue.journal(id)).at(-1)?.note;
const codeOf = (error: unknown) => (isVenturiError(error) ? error.code : error);
const fail = (): never => {
  throw new Error("hook failed");
};

interface TestSchema<Input, Output> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => { readonly value: Output };
    readonly types?: { readonly input: Input; readonly output: Output };
  };
}

/** A schema that accepts everything at enqueue, and does as it is told in the worker. */
function schemaOf<Input = N, Output = N>(validate: (value: unknown) => unknown) {
  const hook = { isOn: false };
  const schema: TestSchema<Input, Output> = {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: (value) => (hook.isOn ? validate(value) : { value }) as { value: Output },
    },
  };
  return { schema, hook };
}

/** What schemas that break their contract answer. */
const lies: readonly (readonly [string, (value: unknown) => unknown])[] = [
  ["throws", fail],
  ["rejects", () => Promise.reject(new Error("hook failed"))],
  ["answers nothing", () => undefined],
  ["promises nothing", () => Promise.resolve(undefined)],
  ["answers with text", () => "fine"],
  ["answers with issues that are none", () => ({ issues: 5 })],
  // biome-ignore lint/suspicious/noThenProperty: this is what is tested
  ["answers with a thenable that throws", () => ({ then: fail })],
];

describe("a payload schema that", () => {
  test.each(lies)(
    "%s makes its job dead, or runs it, and never holds up the others",
    async (name, lie) => {
      const { schema, hook } = schemaOf(lie);
      const Bad = defineTask({ kind: `bad schema ${name}`, payload: schema });
      const Good = defineTask({ kind: `good beside ${name}`, payload });
      const bad = await queue.enqueue(Bad({ n: 1 }));
      const good = await queue.enqueue(Good({ n: 1 }));
      hook.isOn = true;
      const worker = new Worker(store, { concurrency: 1 })
        .register(Bad, () => undefined)
        .register(Good, () => undefined);
      await worker.runOnce();
      expect(await outcomes(good)).toEqual(["completed"]);
      expect(["dead", "completed"]).toContain((await outcomes(bad))[0]);
    },
  );

  test("answers with a thenable that returns nothing is waited for", async () => {
    const { schema, hook } = schemaOf((value) => ({
      // biome-ignore lint/suspicious/noThenProperty: this is what is tested
      then: (resolve: (result: unknown) => void) => void setTimeout(() => resolve({ value }), 20),
    }));
    const Task = defineTask({ kind: "odd thenable", payload: schema });
    await queue.enqueue(Task({ n: 7 }));
    hook.isOn = true;
    const got: unknown[] = [];
    const worker = new Worker(store).register(Task, (given) => {
      got.push(given);
    });
    await worker.runOnce();
    expect(got).toEqual([{ n: 7 }]);
  });

  test("hangs takes its slot and nothing else: others run, and a stop hands the job back", async () => {
    const { schema, hook } = schemaOf(() => deferred().promise);
    const Hangs = defineTask({ kind: "hangs", payload: schema });
    const Good = defineTask({ kind: "beside_hanging", payload });
    const hanging = await queue.enqueue(Hangs({ n: 1 }));
    const good = await queue.enqueueMany(Array.from({ length: 5 }, (_, n) => Good({ n })));
    hook.isOn = true;
    const worker = new Worker(store, { concurrency: 2, shutdownTimeout: 100 })
      .register(Hangs, () => undefined)
      .register(Good, () => undefined);
    const [report] = await running(worker, () =>
      until(async () =>
        (await Promise.all(good.map(outcomes))).every(([end]) => end === "completed"),
      ),
    );
    expect(report).toEqual({ unreleased: [] });
    expect(await queue.job(hanging)).toMatchObject({ status: "pending", runCount: 0 });
    expect(await outcomes(hanging)).toEqual([]);
    await queue.cancel(hanging);
  });

  test("hangs is not waited for by recovery", async () => {
    const { schema, hook } = schemaOf(() => deferred().promise);
    const Hangs = defineTask({ kind: "hangs_in_recovery", payload: schema });
    const ids = await queue.enqueueMany(Array.from({ length: 5 }, (_, n) => Hangs({ n })));
    const { worker: dead } = await store.startWorker({
      name: "dead",
      kinds: [Hangs.kind],
      pollMaxMs: 60_000,
      workerTimeoutMs: 300,
      shortestLeaseMs: 60_000,
    });
    const kinds = [{ kind: Hangs.kind, limit: 5, leaseMs: 60_000, backstop: 1 }];
    await store.claim({ worker: dead, limit: 5, kinds, turn: { counter: 0, ratio: null } });
    hook.isOn = true;
    const worker = new Worker(store, { workerTimeout: 300, shutdownTimeout: 100 }).register(
      Hangs,
      () => undefined,
    );
    await running(worker, () =>
      until(async () => (await Promise.all(ids.map(outcomes))).every(([end]) => end === "dead"), {
        withinMs: 5_000,
      }),
    );
  });
});

describe("a carry default that", () => {
  test.each(lies)(
    "%s makes its job dead, or runs it, and never holds up the others",
    async (name, lie) => {
      const { schema: carry, hook } = schemaOf<number | undefined, number>(lie);
      const Bad = defineTask({ kind: `bad carry ${name}`, payload, carry });
      const Good = defineTask({ kind: `good carry beside ${name}`, payload });
      const bad = await queue.enqueue(Bad({ n: 1 }));
      const good = await queue.enqueue(Good({ n: 1 }));
      hook.isOn = true;
      const worker = new Worker(store, { concurrency: 1 })
        .register(Bad, () => undefined)
        .register(Good, () => undefined);
      await worker.runOnce();
      expect(await outcomes(good)).toEqual(["completed"]);
      expect(["dead", "completed"]).toContain((await outcomes(bad))[0]);
    },
  );
});

describe("a backoff that", () => {
  test.each<[string, () => unknown]>([
    ["throws", fail],
    ["is asynchronous", async () => new Backoff({ base: "1h", cap: "1h" })],
    ["rejects", () => Promise.reject(new Error("hook failed"))],
    ["hangs", () => deferred().promise],
    ["is none", () => ({ baseMs: 5 })],
    ["is nothing", () => undefined],
  ])("%s is replaced by the worker's", async (name, backoff) => {
    const Task = defineTask({
      kind: `backoff ${name}`,
      payload,
      backoff: backoff as () => Backoff,
    });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, () => {
      throw new Error("no");
    });
    expect(await worker.runOnce()).toMatchObject({ retried: 1 });
    const job = await queue.job(id);
    expect((job?.visibleAt?.getTime() ?? 0) - Date.now()).toBeLessThan(60_000);
  });
});

describe("a lease that", () => {
  test.each<[string, () => unknown]>([
    ["throws", fail],
    ["is asynchronous", async () => "5m"],
    ["is not a duration", () => "soon"],
    ["is negative", () => -1],
  ])(
    "%s fails its enqueue, inside a transaction too, and leaves none open",
    async (name, lease) => {
      const Task = defineTask({ kind: `lease ${name}`, payload, lease: lease as () => number });
      expect(await queue.enqueue(Task({ n: 1 })).catch(codeOf)).toBe("invalid-argument");
      const client = await database.pool.connect();
      await client.query("begin");
      expect(
        await queue
          .within(client)
          .enqueue(Task({ n: 1 }))
          .catch(codeOf),
      ).toBe("invalid-argument");
      expect((await client.query("commit")).command).toBe("COMMIT");
      client.release();
      const { rows } = await database.pool.query(
        "select 1 from pg_stat_activity where datname = current_database() and state = 'idle in transaction'",
      );
      expect(rows).toEqual([]);
    },
  );
});

describe("a toJSON that", () => {
  test.each<[string, () => unknown]>([
    ["throws", fail],
    ["answers nothing", () => undefined],
    ["answers with a bigint", () => 5n],
    ["is asynchronous", async () => 5],
    ["answers with another that throws", () => ({ deep: { toJSON: fail } })],
  ])("%s in an attachment changes no outcome", async (name, toJSON) => {
    const Task = defineTask({ kind: `attachment ${name}`, payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, (_, ctx) => ctx.attach({ toJSON }));
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
    expect(await outcomes(id)).toEqual(["completed"]);
  });

  test.each<[string, () => unknown]>([
    ["throws", fail],
    ["answers nothing", () => undefined],
    ["answers with a bigint", () => 5n],
  ])("%s in a carry makes a pause dead, which says so", async (name, toJSON) => {
    const carry = v.optional(v.unknown(), 0);
    const Task = defineTask({ kind: `carry toJSON ${name}`, payload, carry });
    const id = await queue.enqueue(Task({ n: 1 }));
    const worker = new Worker(store).register(Task, (_, ctx) => {
      ctx.carry = { toJSON } as never;
      return Outcome.pauseFor(0);
    });
    expect(await worker.runOnce()).toMatchObject({ dead: 1 });
    expect(await lastNote(id)).toBe("carry could not be serialized");
  });
});

test("a handler's thenable that calls back twice and throws ends its run once", async () => {
  const Task = defineTask({ kind: "thenable", payload });
  const id = await queue.enqueue(Task({ n: 1 }));
  const worker = new Worker(store);
  worker.register(Task, (() => ({
    // biome-ignore lint/suspicious/noThenProperty: this is what is tested
    then(resolve: (value: unknown) => void, reject: (error: unknown) => void) {
      resolve(undefined);
      reject(new Error("no"));
      throw new Error("no");
    },
  })) as never);
  expect(await worker.runOnce()).toMatchObject({ completed: 1 });
  expect(await outcomes(id)).toEqual(["completed"]);
});
