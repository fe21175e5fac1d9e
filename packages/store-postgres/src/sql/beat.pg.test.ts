import type { WorkerId, WorkerRegistration } from "@venturi/core";
import { testDatabase } from "@venturi-tooling/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { stopSqlClock } from "../testing/sql-clock.ts";
import { registration, startWorker } from "../testing/store-fixture.ts";

const { pool } = await testDatabase();
const store = new PostgresStore({ pool });
const clock = await stopSqlClock(pool);

beforeEach(() => pool.query("delete from venturi_workers"));

const patient = { workerTimeoutMs: 60_000, shortestLeaseMs: 900_000 };
const beat = (worker: WorkerId, changes: Partial<WorkerRegistration> = {}) =>
  store.beat({ worker, ...registration, ...changes });
const rowOf = async (worker: WorkerId) =>
  (await pool.query("select * from venturi_workers where id = $1", [worker])).rows[0];

describe("a worker session", () => {
  it("publishes what others judge it by", async () => {
    const changes = { name: "w", kinds: ["a", "b"], pollMaxMs: 7, ...patient };
    const row = await rowOf(await startWorker(store, changes));
    const now = new Date(await clock.now());
    expect(row).toMatchObject({
      name: "w",
      kinds: ["a", "b"],
      poll_max_ms: 7,
      worker_timeout_ms: 60_000,
      shortest_lease_ms: 900_000,
      started_at: now,
      beat_at: now,
      stopping_at: null,
    });
  });

  it("has a name of its own that is not its number", async () => {
    const [one, two] = [await startWorker(store), await startWorker(store)];
    expect(one).not.toBe(two);
  });

  it("may last and wait for ever", async () => {
    const ever = Number.POSITIVE_INFINITY;
    const endless = { pollMaxMs: ever, workerTimeoutMs: ever, shortestLeaseMs: ever };
    const [one, two] = [await startWorker(store, endless), await startWorker(store, endless)];
    await clock.advance(1e12);
    const { silent } = await beat(one, endless);
    expect(silent).toEqual([]);
    expect((await beat(two, endless)).silent).toEqual([]);
  });

  it("that has ended is waited for no more", async () => {
    const [one, two] = [await startWorker(store), await startWorker(store, patient)];
    await store.stopWorker({ worker: two });
    await clock.advance(3_600_000);
    expect(await beat(one)).toMatchObject({ silent: [], nextSuspectMs: null });
  });
});

describe("a beat", () => {
  it("is when the worker was last heard of", async () => {
    const worker = await startWorker(store);
    await clock.advance(5_000);
    await beat(worker);
    expect((await rowOf(worker)).beat_at).toEqual(new Date(await clock.now()));
  });

  it("restores a row that was removed, with the settings of the worker", async () => {
    const worker = await startWorker(store, { name: "w", ...patient });
    const before = await rowOf(worker);
    await pool.query("delete from venturi_workers");
    await beat(worker, { name: "w", ...patient });
    expect(await rowOf(worker)).toMatchObject({ ...before, started_at: expect.any(Date) });
  });

  it("brings back a worker that was given up", async () => {
    const [one, two] = [await startWorker(store), await startWorker(store, patient)];
    await store.stopWorker({ worker: two });
    await beat(two, patient);
    expect(await beat(one)).toMatchObject({ silent: [], nextSuspectMs: 60_000 });
  });

  it("says anew what leases the worker has, by which others judge it", async () => {
    const [one, two] = [await startWorker(store), await startWorker(store, patient)];
    await beat(two, { ...patient, shortestLeaseMs: 1_000 });
    expect((await beat(one)).nextSuspectMs).toBe(1_000);
  });

  it("says what the database's clock says", async () => {
    const worker = await startWorker(store);
    await clock.advance(1_234);
    expect((await beat(worker)).clockMs).toBe(await clock.now());
  });

  it("counts the others that have been heard of lately, not those that may be silent for ever", async () => {
    const ever = Number.POSITIVE_INFINITY;
    const worker = await startWorker(store);
    for (const shortestLeaseMs of [900_000, ever])
      await startWorker(store, { workerTimeoutMs: ever, shortestLeaseMs });
    await startWorker(store, patient);
    expect((await beat(worker)).others).toBe(3);
    await clock.advance(60_000);
    expect((await beat(worker)).others).toBe(2);
    await clock.advance(240_000);
    expect((await beat(worker)).others).toBe(0);
  });

  it("says how long the server has been up", async () => {
    const worker = await startWorker(store);
    const { rows } = await pool.query(
      "select (extract(epoch from now() - pg_postmaster_start_time()) * 1000)::float8 as ms",
    );
    const { serverUpMs } = await beat(worker);
    expect(serverUpMs).toBeGreaterThanOrEqual(rows[0].ms);
    expect(serverUpMs).toBeLessThan(rows[0].ms + 60_000);
  });
});

describe("who has gone silent", () => {
  it("is judged by its own timeout, never by the observer's", async () => {
    const observer = await startWorker(store, { workerTimeoutMs: 1, shortestLeaseMs: 1 });
    const worker = await startWorker(store, { name: "w", ...patient });
    await clock.advance(59_999);
    expect(await beat(observer)).toMatchObject({ silent: [], nextSuspectMs: 1 });
    await clock.advance(1);
    expect(await beat(observer)).toMatchObject({
      silent: [{ worker, name: "w", silentMs: 60_000, dead: true }],
      nextSuspectMs: null,
    });
  });

  it("is suspect after its shortest lease, dead after its timeout", async () => {
    const observer = await startWorker(store);
    const worker = await startWorker(store, { workerTimeoutMs: 60_000, shortestLeaseMs: 1_000 });
    expect(await beat(observer)).toMatchObject({ silent: [], nextSuspectMs: 1_000 });
    await clock.advance(1_000);
    expect(await beat(observer)).toMatchObject({
      silent: [{ worker, silentMs: 1_000, dead: false }],
      nextSuspectMs: 59_000,
    });
    await clock.advance(59_000);
    expect(await beat(observer)).toMatchObject({ silent: [{ worker, dead: true }] });
  });

  it("is suspect after its timeout where that is shorter than its leases", async () => {
    const observer = await startWorker(store);
    await startWorker(store, patient);
    expect((await beat(observer)).nextSuspectMs).toBe(60_000);
  });

  it("is who has been silent the longest first, and never the one that asks", async () => {
    const workers = [await startWorker(store), await startWorker(store), await startWorker(store)];
    const observer = await startWorker(store);
    await clock.advance(3_600_000);
    for (const [index, hours] of [2, 3, 1].entries()) {
      const earlier = "update venturi_workers set beat_at = beat_at - $2::interval where id = $1";
      await pool.query(earlier, [workers[index], `${hours} hours`]);
    }
    const { silent } = await beat(observer);
    expect(silent.map(({ worker }) => workers.indexOf(worker))).toEqual([1, 0, 2]);
    const hours = silent.map(({ silentMs }) => silentMs / 3_600_000);
    expect(hours).toEqual([4, 3, 2]);
  });

  it("is nobody while all beat, and the next look is due when the first could be missed", async () => {
    const [one, two, three] = [
      await startWorker(store, patient),
      await startWorker(store, { ...patient, workerTimeoutMs: 30_000 }),
      await startWorker(store, { ...patient, workerTimeoutMs: 90_000 }),
    ];
    for (let n = 0; n < 3; n += 1) {
      await clock.advance(10_000);
      await beat(two);
      await beat(three);
      expect(await beat(one)).toMatchObject({ silent: [], nextSuspectMs: 30_000 });
    }
  });
});
