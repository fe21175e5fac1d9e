import {
  defineTask,
  type JobId,
  Outcome,
  type ProducerStore,
  type Store,
  type WorkerStore,
} from "@venturi/core";
import * as v from "valibot";
import { describe, expectTypeOf, test } from "vitest";
import { type Handler, type JobContext, type RunCounts, type RunReport, Worker } from "./index.ts";

const SendEmail = defineTask({
  kind: "send_email",
  payload: v.object({ to: v.string(), subject: v.optional(v.string(), "hi") }),
});
const SyncContacts = defineTask({
  kind: "sync_contacts",
  payload: v.object({ account: v.string() }),
  carry: v.optional(v.object({ page: v.number() }), { page: 0 }),
});
const Dated = defineTask({
  kind: "dated",
  payload: v.pipe(
    v.object({ at: v.string() }),
    v.transform(({ at }) => new Date(at)),
  ),
});

interface App {
  readonly mailer: { send(to: string): Promise<void> };
}
declare const app: App;
interface Tx {
  query(): void;
}
declare const store: Store<Tx>;
declare const tx: Tx;
declare const workerStore: WorkerStore;

describe("a handler", () => {
  test("gets the payload that the schema gives, a typed context and the state", () => {
    new Worker(store, { state: app, concurrency: 16 })
      .register(SendEmail, async (email, ctx, state) => {
        expectTypeOf(email).toEqualTypeOf<{ to: string; subject: string }>();
        expectTypeOf(ctx).toEqualTypeOf<JobContext<undefined, Tx>>();
        expectTypeOf(ctx.id).toEqualTypeOf<JobId>();
        expectTypeOf(state).toEqualTypeOf<App>();
        await state.mailer.send(email.to);
      })
      .register(SyncContacts, (sync, ctx) => {
        expectTypeOf(sync).toEqualTypeOf<{ account: string }>();
        expectTypeOf(ctx.carry).toEqualTypeOf<{ page: number }>();
        ctx.carry.page += 1;
        ctx.carry = { page: 3 };
        // @ts-expect-error a carry of another shape
        ctx.carry = { page: "3" };
        return Outcome.pauseFor("1s");
      })
      .register(Dated, (date) => {
        expectTypeOf(date).toEqualTypeOf<Date>();
      });
  });

  test("can be declared apart from its registration", () => {
    const sendEmail: Handler<typeof SendEmail, App> = async (email, ctx, { mailer }) => {
      expectTypeOf(ctx.carry).toEqualTypeOf<undefined>();
      await mailer.send(email.to);
    };
    const sync: Handler<typeof SyncContacts> = (_, ctx) =>
      ctx.carry.page > 3 ? Outcome.completed() : undefined;
    new Worker(store, { state: app }).register(SendEmail, sendEmail);
    new Worker(store).register(SyncContacts, sync, { cap: 2 });
  });

  test("returns an Outcome or nothing", () => {
    const worker = new Worker(store);
    const maybe = (): Outcome | undefined => undefined;
    worker.register(SendEmail, maybe);
    worker.register(SendEmail, async () => undefined);
    worker.register(SendEmail, async () => {
      throw new Error("always");
    });
    // @ts-expect-error return an Outcome or nothing
    worker.register(SendEmail, () => 5);
    // @ts-expect-error return an Outcome or nothing
    worker.register(SendEmail, async () => 5);
    // @ts-expect-error return an Outcome or nothing
    worker.register(SendEmail, (email) => [email].push(email));
    const insert = async () => ({ rowCount: 1 });
    // @ts-expect-error return an Outcome or nothing
    worker.register(SendEmail, () => insert());
    // @ts-expect-error return an Outcome or nothing
    const wrong: Handler<typeof SendEmail> = () => "done";
    worker.register(SendEmail, wrong);
  });

  test("is for the payload and carry of its own task", () => {
    const worker = new Worker(store);
    const handler: Handler<typeof SendEmail> = () => undefined;
    // @ts-expect-error the payload of another task
    worker.register(Dated, handler);
    // @ts-expect-error an option that does not exist
    worker.register(SendEmail, handler, { caps: 2 });
  });
});

describe("a lease", () => {
  test("is asked for and extended in the units of the rest", () => {
    new Worker(store).register(SendEmail, async (_, ctx) => {
      expectTypeOf(ctx.timeRemaining()).toEqualTypeOf<number>();
      expectTypeOf(ctx.extendLease("5m")).toEqualTypeOf<Promise<Date>>();
      // @ts-expect-error no duration
      await ctx.extendLease("soon");
    });
  });
});

describe("completing in a transaction", () => {
  test("takes the transactions of the worker's store, and no others", () => {
    new Worker(store).register(SendEmail, async (_, ctx) => {
      await ctx.complete(tx);
      await ctx.complete(tx, "note");
      // @ts-expect-error no transaction of this store
      await ctx.complete({ begin: true });
    });
    // @ts-expect-error the return value of complete is nothing to return
    new Worker(store).register(SendEmail, (_, ctx) => ctx.complete);
  });

  test("is not to be had over a store without transactions", () => {
    new Worker(workerStore).register(SendEmail, async (_, ctx) => {
      expectTypeOf(ctx.complete).parameter(0).toEqualTypeOf<never>();
      // @ts-expect-error there are no transactions
      await ctx.complete(tx);
    });
  });

  test("a handler that is declared apart names its transaction, and fits no other store", () => {
    const completes: Handler<typeof SendEmail, undefined, Tx> = (_, ctx) => ctx.complete(tx);
    new Worker(store).register(SendEmail, completes);
    // @ts-expect-error a store without transactions
    new Worker(workerStore).register(SendEmail, completes);
    const plain: Handler<typeof SendEmail> = () => undefined;
    new Worker(store).register(SendEmail, plain);
    new Worker(workerStore).register(SendEmail, plain);
  });
});

describe("state", () => {
  const needsApp: Handler<typeof SendEmail, App> = async (email, _, { mailer }) =>
    mailer.send(email.to);

  test("a handler that needs it cannot be registered on a worker without it", () => {
    // @ts-expect-error there is no state
    new Worker(store).register(SendEmail, needsApp);
    // @ts-expect-error another state
    new Worker(store, { state: { mailer: 5 } }).register(SendEmail, needsApp);
    new Worker(store, { state: app }).register(SendEmail, needsApp);
  });

  test("is what it is given as, with methods and `this` too", () => {
    new Worker(store, { state: { mailer: { send: async (_to: string) => undefined } } })
      .register(SendEmail, needsApp)
      .register(SyncContacts, (_, _ctx, state) => {
        expectTypeOf(state).toEqualTypeOf<{
          mailer: { send: (to: string) => Promise<undefined> };
        }>();
      });
    const counter = {
      state: {
        count: 0,
        add() {
          this.count += 1;
        },
      },
    };
    new Worker(store, counter).register(SendEmail, (_, _ctx, state) => state.add());
    new Worker(store, {
      state: {
        count: 0,
        add() {
          this.count += 1;
        },
      },
    }).register(SendEmail, (_, _ctx, state) => {
      expectTypeOf(state).toEqualTypeOf<{ count: number; add(): void }>();
      state.add();
    });
    expectTypeOf(new Worker(store, { state: app })).toEqualTypeOf<Worker<App, Tx>>();
    expectTypeOf(new Worker(store)).toEqualTypeOf<Worker<undefined, Tx>>();
    // @ts-expect-error there may be no state
    new Worker(store, { state: undefined as App | undefined }).register(SendEmail, needsApp);
  });

  test("without it the third argument is undefined", () => {
    new Worker(store, { concurrency: 4 }).register(SendEmail, (_payload, _ctx, state) => {
      expectTypeOf(state).toEqualTypeOf<undefined>();
    });
  });

  test("it is required where the worker's type says so", () => {
    // @ts-expect-error the state is missing
    new Worker<App>(workerStore);
    // @ts-expect-error the state is missing
    new Worker<App>(workerStore, { concurrency: 2 });
    new Worker<App>(workerStore, { state: app });
  });
});

describe("a worker", () => {
  test("works over any store that workers can use", () => {
    new Worker(workerStore);
    new Worker(store);
    const producer = {} as ProducerStore;
    // @ts-expect-error only producers can use it
    new Worker(producer);
  });

  test("knows its options", () => {
    new Worker(store, { pollMax: "1s", backstop: null, priorityRatio: null, prefetch: "auto" });
    new Worker(store, { panicPolicy: "dead" });
    // @ts-expect-error another policy
    new Worker(store, { panicPolicy: "ignore" });
    // @ts-expect-error an unknown option
    new Worker(store, { concurency: 4 });
    // @ts-expect-error text from configuration goes through parseDuration
    new Worker(store, { pollMax: "soon" });
    new Worker(store, { prefetch: 10 });
    // @ts-expect-error another word
    new Worker(store, { prefetch: "all" });
  });

  test("reports what it did", () => {
    const worker = new Worker(store);
    expectTypeOf(worker.run({})).resolves.toEqualTypeOf<RunReport>();
    expectTypeOf(worker.runOnce()).resolves.toEqualTypeOf<RunCounts>();
    expectTypeOf(worker.stop()).resolves.toEqualTypeOf<void>();
    expectTypeOf(worker).toExtend<AsyncDisposable>();
  });
});
