import { testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { noHint } from "../hint.ts";
import { PostgresStore } from "../postgres-store.ts";
import { removeJobs } from "../testing/backlog.ts";
import { bareEnqueue, bareId } from "../testing/bare-sql.ts";
import { startWorker } from "../testing/store-fixture.ts";

const { directUrl, pool } = await testDatabase();
const store = new PostgresStore({ pool });
const listener = new pg.Client({ connectionString: directUrl });
let heard: string[] = [];
let passed: () => void = () => undefined;

beforeAll(async () => {
  await listener.connect();
  await listener.query("listen venturi; listen barrier");
  listener.on("notification", ({ channel, payload }) => {
    if (channel === "barrier") passed();
    else heard.push(String(payload));
  });
});
afterAll(() => listener.end());
beforeEach(async () => {
  await removeJobs(pool);
  await pool.query("delete from venturi_workers; update venturi_meta set notify = true");
  await notifications();
});

/** The payloads that have arrived since the last look, of everything that has been committed. */
async function notifications(): Promise<readonly string[]> {
  const arrived = new Promise<void>((resolve) => {
    passed = resolve;
  });
  await pool.query("notify barrier");
  await arrived;
  const taken = heard;
  heard = [];
  return taken;
}

const keyed = (changes: object = {}) => ({ kind: "k", dedup_key: "key", ...changes });

describe("a call notifies", () => {
  it("once, however many jobs and whatever they hold", async () => {
    const jobs = Array.from({ length: 100 }, (_, n) =>
      keyed({ dedup_key: `${n % 50}`, payload: n }),
    );
    await bareEnqueue(pool, jobs);
    expect(await notifications()).toEqual([noHint]);
  });

  it("with the id of a single new job that says no more than its payload", async () => {
    const { id } = bareId();
    await bareEnqueue(pool, [{ ...bareId(), kind: "first" }]);
    expect(await notifications()).toEqual([noHint]);
    await bareEnqueue(pool, [{ id, kind: "first", payload: "second" }]);
    expect(await notifications()).toEqual([id]);
    for (const option of [{ priority: "low" }, { dedup_key: "1" }, { headers: {} }])
      await bareEnqueue(pool, [{ ...bareId(), kind: "first", ...option }]);
    expect(await notifications()).toEqual([noHint, noHint, noHint]);
  });

  it("with that of the first at most, where many calls share a transaction", async () => {
    const first = bareId();
    await bareEnqueue(pool, [keyed()]);
    await notifications();
    const client = await pool.connect();
    await client.query("begin");
    for (const id of [first, bareId(), bareId(), bareId()])
      await bareEnqueue(client, [{ ...id, kind: "k" }]);
    await client.query("commit");
    client.release();
    expect(await notifications()).toEqual([first.id, noHint]);
  });

  it("with as much in it as an id, however long names and payload are", async () => {
    const job = {
      kind: "k".repeat(200),
      dedup_key: "d".repeat(512),
      payload: "x".repeat(5_000_000),
    };
    await bareEnqueue(pool, [job]);
    await bareEnqueue(pool, [{ ...bareId(), kind: job.kind, payload: job.payload }]);
    expect((await notifications()).map((payload) => payload.length)).toEqual([36, 36]);
  });

  it("when its transaction commits, not before", async () => {
    const client = await pool.connect();
    await client.query("begin");
    await bareEnqueue(client, [keyed()]);
    await bareEnqueue(client, [keyed({ dedup_key: "2" })]);
    expect(await notifications()).toEqual([]);
    await client.query("commit");
    client.release();
    expect(await notifications()).toEqual([noHint]);
  });

  it("never when its transaction rolls back", async () => {
    const client = await pool.connect();
    await client.query("begin");
    await bareEnqueue(client, [keyed()]);
    await client.query("rollback");
    client.release();
    expect(await notifications()).toEqual([]);
  });

  it("not when it writes nothing new", async () => {
    const job = keyed(bareId());
    await bareEnqueue(pool, [job]);
    await notifications();
    await bareEnqueue(pool, [job]);
    await bareEnqueue(pool, [keyed({ merge: "keep" })]);
    await bareEnqueue(pool, []);
    await expect(bareEnqueue(pool, [{}])).rejects.toThrow();
    expect(await notifications()).toEqual([]);
  });
});

describe("a job that is not due yet", () => {
  const inMs = (delay_ms: number | string) => bareEnqueue(pool, [{ kind: "k", delay_ms }]);

  it("notifies nobody where no worker lives", async () => {
    await inMs(1000);
    await inMs(7 * 86_400_000);
    expect(await notifications()).toEqual([]);
  });

  it("notifies when it is due before a living worker would look again", async () => {
    await startWorker(store, { pollMaxMs: 5_000 });
    await inMs(4_000);
    expect(await notifications()).toEqual([noHint]);
    await inMs(60_000);
    expect(await notifications()).toEqual([]);
    await startWorker(store, { pollMaxMs: 100_000 });
    await inMs(60_000);
    expect(await notifications()).toEqual([noHint]);
    await bareEnqueue(pool, [
      { kind: "k", delay_ms: 1e9 },
      { kind: "k", delay_ms: 60_000 },
    ]);
    expect(await notifications()).toEqual([noHint]);
  });

  it("counts workers that look silent, as all do when the clock has just jumped", async () => {
    await startWorker(store, { pollMaxMs: 100_000, workerTimeoutMs: 1_000 });
    await pool.query("update venturi_workers set beat_at = beat_at - interval '7 days'");
    await inMs(60_000);
    expect(await notifications()).toEqual([noHint]);
  });

  it("does not count workers that have stopped or been given up", async () => {
    const options = { pollMaxMs: 100_000, workerTimeoutMs: 1_000 };
    await store.stopWorker({ worker: await startWorker(store, options) });
    const worker = await startWorker(store, options);
    await pool.query("update venturi_workers set beat_at = beat_at - interval '2 s'");
    const holders = [{ worker, overdueOnly: false }];
    await store.findStale({ holders, orphans: false, limit: 1 });
    await inMs(60_000);
    expect(await notifications()).toEqual([]);
  });

  it("counts workers that sleep for ever and are never given up", async () => {
    await startWorker(store, {
      pollMaxMs: Number.POSITIVE_INFINITY,
      workerTimeoutMs: Number.POSITIVE_INFINITY,
      shortestLeaseMs: Number.POSITIVE_INFINITY,
    });
    await inMs(7 * 86_400_000);
    expect(await notifications()).toEqual([noHint]);
  });
});

describe("a merge", () => {
  it.each([
    ["makes it due earlier", { delay_ms: 60_000 }, {}, 1],
    ["makes it due earlier, but late all the same", { delay_ms: 90_000 }, { delay_ms: 60_000 }, 0],
    ["raises its priority", { priority: "low" }, { priority: "high" }, 1],
    [
      "raises the priority of one that is parked",
      { delay_ms: 60_000 },
      { priority: "high", delay_ms: 60_000 },
      0,
    ],
    ["lowers its priority", {}, { priority: "low" }, 0],
    ["changes the payload alone", {}, { payload: 1 }, 0],
    ["would make it due later", {}, { delay_ms: 60_000 }, 0],
    ["keeps it parked", { delay_ms: 60_000 }, { merge: "keep" }, 0],
  ])("that %s", async (_, first, second, count) => {
    await bareEnqueue(pool, [keyed(first)]);
    await notifications();
    await bareEnqueue(pool, [keyed(second)]);
    expect(await notifications()).toHaveLength(count);
  });
});

describe("configure", () => {
  it("turns notifications off for every producer, and on again", async () => {
    await store.configure({ notify: false });
    await bareEnqueue(pool, [keyed(), { kind: "k" }]);
    expect(await notifications()).toEqual([]);
    await store.configure({ notify: true });
    await bareEnqueue(pool, [{ kind: "k" }]);
    expect(await notifications()).toEqual([noHint]);
  });

  it.each([undefined, null, {}, { notify: 1 }])("refuses %j", async (settings) => {
    const call = store.configure(settings as { notify: boolean });
    await expect(call).rejects.toMatchObject({ code: "invalid-argument", argument: "notify" });
  });
});
