import { defineTask, VenturiError } from "@venturi/core";
import { testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import type { EnqueueOptions } from "./enqueue.ts";
import { Queue } from "./queue.ts";
import { Count, SendEmail } from "./testing/tasks.ts";

const database = await testDatabase();
const queue = new Queue(database.pool);

async function jobCount(): Promise<number> {
  const { rows } = await database.pool.query("select count(*)::int as count from venturi_jobs");
  return rows[0].count;
}

describe("bad input is a typed error, and nothing is written", () => {
  const Throws = defineTask({
    kind: "throws",
    payload: v.unknown(),
    dedupKey: () => {
      throw new RangeError("no key");
    },
  });
  const Any = defineTask({ kind: "any", payload: v.unknown() });

  it.each([
    [
      "a payload that its schema refuses",
      () => queue.enqueue(SendEmail({ to: "x" })),
      "validation",
      /to/,
    ],
    [
      "a payload that JSON cannot hold",
      () => queue.enqueue(Any({ a: [1n] })),
      "serialization",
      /a\[0\]/,
    ],
    ["U+0000", () => queue.enqueue(Any({ a: "x\0y" })), "serialization", /payload\.a/],
    ["half a surrogate pair", () => queue.enqueue(Any("\ud800")), "serialization", /payload/],
    ["a callback that throws", () => queue.enqueue(Throws(1)), "invalid-argument", /no key/],
    ["no job", () => queue.enqueue({ kind: "x" } as never), "invalid-argument", /job/],
    ["a task instead of a job", () => queue.enqueue(Count as never), "invalid-argument", /job/],
    [
      "null as headers",
      () => queue.enqueue(Count({ n: 1 }), { headers: null as never }),
      "invalid-argument",
      /headers is null/,
    ],
    [
      "delay with runAt",
      () => queue.enqueue(Count({ n: 1 }), { delay: 1, runAt: new Date() }),
      "invalid-argument",
      /delay.*runAt/,
    ],
    [
      "a malformed delay",
      () => queue.enqueue(Count({ n: 1 }), { delay: "5 parsecs" as never }),
      "invalid-argument",
      /delay/,
    ],
    [
      "a delay that is no number",
      () => queue.enqueue(Count({ n: 1 }), { delay: Number.NaN }),
      "invalid-argument",
      /delay/,
    ],
    [
      "an invalid date",
      () => queue.enqueueAt(Count({ n: 1 }), new Date(Number.NaN)),
      "invalid-argument",
      /runAt/,
    ],
    [
      "no date",
      () => queue.enqueueAt(Count({ n: 1 }), undefined as never),
      "invalid-argument",
      /runAt/,
    ],
    [
      "another date in the options",
      () =>
        queue.enqueueAt(Count({ n: 1 }), new Date(), { runAt: new Date(8e12) } as EnqueueOptions),
      "invalid-argument",
      /runAt is given twice/,
    ],
    [
      "a date with a delay",
      () => queue.enqueueAt(Count({ n: 1 }), new Date(), { delay: 1 } as EnqueueOptions),
      "invalid-argument",
      /delay.*runAt/,
    ],
    [
      "another priority",
      () => queue.enqueue(Count({ n: 1 }), { priority: "urgent" as never }),
      "invalid-argument",
      /priority/,
    ],
    [
      "headers that are no text",
      () => queue.enqueue(Count({ n: 1 }), { headers: { a: 1 as never } }),
      "invalid-argument",
      /headers/,
    ],
    [
      "an id that is none",
      () => queue.enqueue(Count({ n: 1 }), { id: "1" }),
      "invalid-argument",
      /id/,
    ],
    [
      "an unknown option",
      () => queue.enqueue(Count({ n: 1 }), { dealy: 1 } as never),
      "invalid-argument",
      /dealy is not an option of enqueue: use delay, .*, signal/,
    ],
    [
      "options that are none",
      () => queue.enqueue(Count({ n: 1 }), null as never),
      "invalid-argument",
      /options/,
    ],
    [
      "items that are no array",
      () => queue.enqueueMany(Count({ n: 1 }) as never),
      "invalid-argument",
      /items/,
    ],
    [
      "a hole in the items",
      () => queue.enqueueMany([Count({ n: 1 }), undefined as never]),
      "invalid-argument",
      /items\[1\]/,
    ],
    [
      "a bad item among good ones",
      () => queue.enqueueMany([Count({ n: 1 }), { job: Count({ n: 1 }), delay: Number.NaN }]),
      "invalid-argument",
      /items\[1\].*delay/,
    ],
  ] as const)("%s", async (_, call, code, message) => {
    const before = await jobCount();
    const error: unknown = await call().then(
      () => "no error",
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(VenturiError);
    expect(error).toMatchObject({
      code,
      message: expect.stringMatching(message),
      isRetryable: false,
    });
    expect(await jobCount()).toBe(before);
  });
});
