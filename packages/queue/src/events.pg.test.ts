import { AsyncLocalStorage } from "node:async_hooks";
import { defineTask, type EnqueueEvent, type JobId, Merge } from "@venturi/core";
import { PostgresStore } from "@venturi/store-postgres";
import { testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { Queue } from "./queue.ts";
import { heardWhile } from "./testing/heard.ts";
import { Count, Kept, Replaced, SendEmail } from "./testing/tasks.ts";

const database = await testDatabase();
const operator = new Queue(new PostgresStore({ pool: database.pool }));
const queue = new Queue(database.pool);

const Added = defineTask({
  kind: "added",
  payload: v.object({ key: v.string(), n: v.number() }),
  dedupKey: ({ key }) => key,
  merge: (incoming, existing) => Merge.with({ ...incoming, n: incoming.n + existing.payload.n }),
});

/** The events of calls, each with what it says beside the call and the time. */
const told = (events: readonly EnqueueEvent[]) =>
  events.map((event) =>
    event.event === "stored"
      ? event.stored.map(({ outcome }) => outcome)
      : event.event === "failed"
        ? event.error
        : event.call.jobs.map(({ kind }) => kind),
  );

describe("a call that enqueues", () => {
  it("is told of before anything is sent, and again when the store has confirmed it", async () => {
    let id = "";
    const seen: unknown[] = [];
    // Sends nothing before the store has said what it knows.
    const query = async (text: string, params: unknown[]) => {
      await Promise.all(seen);
      return database.pool.query(text, params);
    };
    const events = await heardWhile(
      async () => {
        id = await new Queue({ query }).enqueue(Count({ n: 1 }), { priority: "high" });
      },
      ({ call }) => seen.push(operator.job(call.jobs[0]?.id as JobId)),
    );
    const call = {
      jobs: [{ id, kind: "count", priority: "high", headers: {} }],
      isBatch: false,
      inTransaction: false,
    };
    expect(events).toEqual([
      { event: "start", call },
      {
        event: "stored",
        call,
        stored: [{ id, outcome: "enqueued" }],
        durationMs: expect.any(Number),
      },
    ]);
    expect(events[1]?.call).toBe(events[0]?.call);
    expect(await Promise.all(seen)).toMatchObject([null, { status: "pending" }]);
  });

  it("says of each job whether it is new, was merged and how, or is a repeat", async () => {
    const key = "told";
    const id = await queue.enqueue(Count({ n: 1 }));
    await queue.enqueueMany([Kept({ key, n: 1 }), Replaced({ key, n: 1 }), Added({ key, n: 1 })]);
    const events = await heardWhile(async () => {
      await queue.enqueueMany([Kept({ key, n: 2 }), Replaced({ key, n: 2 }), Added({ key, n: 2 })]);
      await queue.enqueue(Count({ n: 1 }), { id });
    });
    expect(told(events)).toEqual([
      ["kept", "replaced", "added"],
      ["kept", "replaced", "merged"],
      ["count"],
      ["repeated"],
    ]);
    expect(events.map(({ call }) => call.isBatch)).toEqual([true, true, false, false]);
  });

  it("carries the headers that a listener adds to it, beside its own", async () => {
    let id = "" as JobId;
    await heardWhile(
      async () => {
        id = await queue.enqueue(Count({ n: 1 }), { headers: { "request-id": "r1" } });
      },
      (event) => {
        const [job] = event.call.jobs;
        if (event.event === "start" && job !== undefined) job.headers["traceparent"] = "00-abc";
      },
    );
    expect((await operator.job(id))?.headers).toEqual({
      "request-id": "r1",
      traceparent: "00-abc",
    });
  });

  it("keeps its own headers where a listener adds what no job can hold", async () => {
    for (const added of ["x".repeat(9_000), 1 as unknown as string]) {
      let id = "" as JobId;
      await heardWhile(
        async () => {
          id = await queue.enqueue(Count({ n: 1 }), { headers: { "request-id": "r2" } });
        },
        ({ call }) => {
          for (const { headers } of call.jobs) headers["baggage"] = added;
        },
      );
      expect((await operator.job(id))?.headers).toEqual({ "request-id": "r2" });
    }
  });

  it("is told of in the context of its caller, one that shares its statement too", async () => {
    const context = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    await heardWhile(
      () =>
        Promise.all(
          ["a", "b"].map((name) => context.run(name, () => queue.enqueue(Count({ n: 1 })))),
        ),
      ({ event }) => event === "start" && seen.push(context.getStore()),
    );
    expect(seen).toEqual(["a", "b"]);
  });

  it("is told to have failed where the store refuses it, without what its error says", async () => {
    const lost = new Queue(database.pool, { prefix: "nowhere" });
    const events = await heardWhile(() => lost.enqueue(Count({ n: 1 })).catch(() => undefined));
    expect(told(events)).toEqual([["count"], { name: "VenturiError", code: "not-migrated" }]);
  });

  it("is not told of where it is refused before anything is sent", async () => {
    const events = await heardWhile(() =>
      queue.enqueue(SendEmail({ to: "nobody" })).catch(() => undefined),
    );
    expect(events).toEqual([]);
  });

  it("is told to have failed when its signal ends the waiting, and stored if it had been sent", async () => {
    const events = await heardWhile(async () => {
      const abort = new AbortController();
      const call = queue.enqueue(Count({ n: 1 }), { signal: abort.signal });
      // What is enqueued in one turn is sent at its end.
      await new Promise((resolve) => setImmediate(resolve));
      abort.abort();
      await expect(call).rejects.toThrow();
      // Behind the first one, which has been sent.
      await queue.enqueue(Count({ n: 2 }));
    });
    expect(told(events)).toEqual([
      ["count"],
      { name: "AbortError", code: "20" },
      ["count"],
      ["enqueued"],
      ["enqueued"],
    ]);
  });

  it("says within a transaction that the transaction has still to commit", async () => {
    const client = await database.pool.connect();
    const events = await heardWhile(async () => {
      await client.query("begin");
      await queue.within(client).enqueue(Count({ n: 1 }));
      await new Queue(client).enqueue(Count({ n: 2 }));
      await client.query("rollback");
    });
    client.release();
    expect(told(events)).toEqual([["count"], ["enqueued"], ["count"], ["enqueued"]]);
    expect(events.map(({ call }) => call.inTransaction)).toEqual([true, true, true, true]);
  });

  it("is told of without its payload, its key and the text of its error", async () => {
    const secret = "s3cr3t";
    const events = await heardWhile(async () => {
      await queue.enqueue(Replaced({ key: secret, n: 1 }));
      const Refused = defineTask({
        kind: "refused",
        payload: v.object({ key: v.string() }),
        dedupKey: ({ key }) => key,
        merge: () => {
          throw new Error(secret);
        },
      });
      await queue.enqueue(Refused({ key: secret }));
      await queue.enqueue(Refused({ key: secret })).catch(() => undefined);
    });
    expect(told(events).at(-1)).toEqual({ name: "VenturiError", code: "merge" });
    expect(JSON.stringify(events)).not.toContain(secret);
  });
});
