import { PostgresStore } from "@venturi/store-postgres";
import { testDatabase } from "@venturi-tooling/testing";
import { describe, expect, it } from "vitest";
import { Queue } from "./queue.ts";
import { Count, Kept } from "./testing/tasks.ts";

const database = await testDatabase();
const queue = new Queue(new PostgresStore({ pool: database.pool }));

describe("job(id)", () => {
  it("is the job as it stands", async () => {
    const id = await queue.enqueue(Kept({ key: "a", n: 1 }), { headers: { a: "1" } });
    const job = await queue.job(id);
    expect(job).toEqual({
      id,
      kind: "kept",
      status: "pending",
      priority: "normal",
      payload: { key: "a", n: 1 },
      carry: null,
      headers: { a: "1" },
      runCount: 0,
      failureCount: 0,
      dedupKey: "a",
      createdAt: expect.any(Date),
      visibleAt: expect.any(Date),
      finishedAt: null,
      claimedBy: null,
      leaseExpiresAt: null,
    });
    expect(Math.abs(Number(job?.createdAt) - Date.now())).toBeLessThan(10_000);
  });

  it("is null for an unknown id, and an error for what is none", async () => {
    expect(await queue.job("01ARZ3NDEKTSV4RRFFQ69G5FAV")).toBeNull();
    const error = { code: "invalid-argument", argument: "id" };
    await expect(queue.job("42")).rejects.toMatchObject(error);
    await expect(queue.job("01arz3ndektsv4rrffq69g5fav")).rejects.toMatchObject(error);
    await expect(queue.journal("42")).rejects.toMatchObject(error);
  });
});

describe("jobs(filter)", () => {
  it("pages through all of them, newest first, each once", async () => {
    const ids = await queue.enqueueMany([1, 2, 3, 4, 5, 6, 7].map((n) => Count({ n })));
    const pages: string[][] = [];
    let cursor: string | undefined;
    do {
      const page = await queue.jobs({ kind: "count", limit: 3, ...(cursor ? { cursor } : {}) });
      pages.push(page.jobs.map(({ id }) => id));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 1]);
    expect(pages.flat()).toEqual([...ids].reverse());
  });

  it("ends without a cursor when a page is exactly full", async () => {
    const page = await queue.jobs({ kind: "count", limit: 7 });
    expect(page.jobs).toHaveLength(7);
    expect(page).not.toHaveProperty("nextCursor");
  });

  it("narrows by status, kind and ids", async () => {
    const [one] = (await queue.jobs({ limit: 1 })).jobs;
    const id = one?.id ?? "";
    expect((await queue.jobs({ ids: [id] })).jobs).toEqual([one]);
    expect((await queue.jobs({ ids: [] })).jobs).toEqual([]);
    expect((await queue.jobs({ status: ["dead", "completed"] })).jobs).toEqual([]);
    expect((await queue.jobs({ kind: ["kept", "count"], status: "pending" })).jobs).toHaveLength(8);
  });

  it.each([
    { limit: 0 },
    { limit: 1001 },
    { limit: 1.5 },
    { limit: Number.NaN },
    { status: "done" },
    { cursor: "x" },
    { finishedSince: new Date(Number.NaN) },
    { kinds: "count" },
  ])("refuses %j, naming the member", async (filter) => {
    await expect(queue.jobs(filter as never)).rejects.toMatchObject({
      code: "invalid-argument",
      message: expect.stringContaining(Object.keys(filter)[0] ?? ""),
    });
  });
});

describe("the signal of jobs and cleanup", () => {
  const gone = AbortSignal.abort(new Error("no"));
  const { signal } = new AbortController();
  const finishedBefore = new Date(0);

  it.each([
    ["in the filter", () => queue.jobs({ signal: gone })],
    ["in the options", () => queue.jobs({}, { signal: gone })],
    ["in the options, without a filter", () => queue.jobs(undefined, { signal: gone })],
    ["in the filter", () => queue.cleanup({ finishedBefore, signal: gone })],
    ["in the options", () => queue.cleanup({ finishedBefore }, { signal: gone })],
  ])("may be %s", async (_, call) => {
    await expect(call()).rejects.toThrow("no");
  });

  it("reaches the store", async () => {
    const controller = new AbortController();
    const listing = queue.jobs({}, { signal: controller.signal });
    controller.abort(new Error("later"));
    await expect(listing).rejects.toThrow("later");
  });

  it("is not two different ones", async () => {
    const error = { code: "invalid-argument", argument: "signal" };
    const other = AbortSignal.timeout(60_000);
    await expect(queue.jobs({ signal }, { signal: other })).rejects.toMatchObject(error);
    const cleaning = queue.cleanup({ finishedBefore, signal }, { signal: other });
    await expect(cleaning).rejects.toMatchObject(error);
    expect((await queue.jobs({ limit: 1, signal }, { signal })).jobs).toHaveLength(1);
  });

  it.each([{ signal: 5 }, { singal: signal }, 5, null])("is not %j", async (options) => {
    const error = { code: "invalid-argument" };
    await expect(queue.jobs({}, options as never)).rejects.toMatchObject(error);
    const cleaning = queue.cleanup({ finishedBefore }, options as never);
    await expect(cleaning).rejects.toMatchObject(error);
  });
});

describe("journal(id)", () => {
  it("holds what happened to the job, in order", async () => {
    const id = await queue.enqueue(Kept({ key: "b", n: 1 }));
    for (const n of [2, 3]) await queue.enqueue(Kept({ key: "b", n }));
    const journal = await queue.journal(id);
    expect(journal.map(({ outcome, jobId }) => [outcome, jobId])).toEqual([
      ["merged", id],
      ["merged", id],
    ]);
  });

  it("is empty for an unknown job", async () => {
    expect(await queue.journal("01ARZ3NDEKTSV4RRFFQ69G5FAV")).toEqual([]);
  });
});

it("a queue that is lean has no verbs of an operator", () => {
  expect(new Queue(database.pool)).not.toHaveProperty("job");
  expect(new Queue(database.pool)).not.toHaveProperty("jobs");
});
