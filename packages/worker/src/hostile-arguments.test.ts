import {
  Backoff,
  defineTask,
  isVenturiError,
  Merge,
  Outcome,
  parseDuration,
  type Store,
  TaskError,
} from "@venturi/core";
import { Queue } from "@venturi/queue";
import { MemoryStore } from "@venturi/testing";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { Worker } from "./index.ts";

// An argument may be anything at run time: whatever throws when it is read comes out as venturi's own error.

const handsOff = () => {
  throw new Error("hands off");
};
const throwing = (name: string) =>
  Object.defineProperty({}, name, { get: handsOff, enumerable: true });
const proxy = new Proxy(
  {},
  { get: handsOff, has: handsOff, ownKeys: handsOff, getOwnPropertyDescriptor: handsOff },
);
const Task = defineTask({ kind: "k", payload: v.any() });
const store: Store = new MemoryStore();
const queue = new Queue(store);
const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

async function failureOf(act: () => unknown): Promise<unknown> {
  try {
    await act();
  } catch (error) {
    return error;
  }
  return "no error";
}

const enqueueOptions = ["delay", "runAt", "priority", "headers", "id", "signal", "other"];
const filters = ["status", "kind", "ids", "finishedSince", "limit", "cursor", "signal"];
const acts: [string, () => unknown][] = [
  ...enqueueOptions.flatMap((name): [string, () => unknown][] => [
    [`enqueue ${name}`, () => queue.enqueue(Task(1), throwing(name))],
    [`item ${name}`, () => queue.enqueueMany([{ job: Task(1), ...proxyOf(name) }] as never)],
    [`enqueueAt ${name}`, () => queue.enqueueAt(Task(1), new Date(), throwing(name))],
  ]),
  ["enqueue options", () => queue.enqueue(Task(1), proxy)],
  ["an item", () => queue.enqueueMany([proxy as never])],
  ["the items", () => queue.enqueueMany(new Proxy([Task(1)], { get: handsOff }))],
  ["enqueueMany signal", () => queue.enqueueMany([Task(1)], throwing("signal"))],
  ["headers", () => queue.enqueue(Task(1), { headers: throwing("a") as never })],
  ["a moment", () => queue.enqueueAt(Task(1), throwing("epochMilliseconds") as never)],
  ["a job", () => queue.enqueue(proxy as never)],
  ["a payload", () => queue.enqueue(Task(throwing("a")))],
  ...filters.map((name): [string, () => unknown] => [
    `jobs ${name}`,
    () => queue.jobs(throwing(name)),
  ]),
  ["cleanup", () => queue.cleanup(throwing("finishedBefore") as never)],
  ["jobs options", () => queue.jobs({}, throwing("signal"))],
  ["cleanup options", () => queue.cleanup({ finishedBefore: new Date() }, throwing("signal"))],
  ["job options", () => queue.job(id, throwing("signal"))],
  ["a signal that is none", () => queue.jobs({ signal: 5 as never })],
  ["another signal that is none", () => queue.stats({ signal: {} as never })],
  ["a signal that throws", () => queue.stats({ signal: throwing("addEventListener") as never })],
  ["a producer", () => new Queue(proxy as never)],
  ["queue options", () => new Queue({ query: async () => ({ rows: [] }) }, proxy)],
  ["a transaction", () => queue.within(proxy as never).enqueue(Task(1))],
  ["a task", () => defineTask(throwing("kind") as never)],
  ["a task's schema", () => defineTask({ kind: "k", payload: throwing("~standard") } as never)],
  ["a backoff", () => new Backoff(throwing("base"))],
  ["a merge", () => Merge.with(1, 1, throwing("priority") as never)],
  ["a task error", () => TaskError.retry("x", throwing("after"))],
  ["a permanent one", () => TaskError.permanent("x", throwing("cause"))],
  ["a pause", () => Outcome.pauseUntil(throwing("getTime") as never)],
  ["a worker's store", () => new Worker(proxy as never)],
  ["a worker's options", () => new Worker(store, throwing("concurrency") as never)],
  ["other options of a worker", () => new Worker(store, proxy as never)],
  ["a registration", () => new Worker(store).register(Task, () => undefined, throwing("cap"))],
  ["a run", () => new Worker(store).register(Task, () => undefined).run(throwing("signal"))],
  ["a run without a signal", () => new Worker(store).runOnce({ signal: 5 as never })],
  ["a duration", () => parseDuration(proxy as never)],
];

/** What a spread leaves of it would be harmless: the item itself is what throws. */
function proxyOf(name: string): object {
  return { [name]: proxy };
}

describe("what throws when it is read", () => {
  it.each(acts)("%s", async (_, act) => {
    const error = await failureOf(act);
    expect(isVenturiError(error), String(error)).toBe(true);
  });
});
