import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { removeJobs } from "../testing/backlog.ts";
import { bareEnqueue, bareId, type Enqueued, liveJobs } from "../testing/bare-sql.ts";
import { claimRequest, newId, settlement, startWorker } from "../testing/store-fixture.ts";
import { until } from "../testing/until.ts";

const { url, pool } = await testDatabase();
const store = new PostgresStore({ pool });
const crowd = new pg.Pool({ connectionString: url, max: 50 });
crowd.on("error", () => undefined);

beforeEach(() => removeJobs(pool));
afterEach(() => expectInvariants(pool));
afterAll(() => crowd.end());

const keyed = (changes: object = {}) => ({ kind: "k", dedup_key: "key", ...changes });

/** Enqueues in a transaction that ends as told once the call has returned. */
async function inTransaction(
  jobs: unknown,
  end: "commit" | "rollback",
): Promise<readonly Enqueued[]> {
  const client = await crowd.connect();
  await client.query("begin");
  const enqueued = await bareEnqueue(client, jobs);
  await client.query(end);
  client.release();
  return enqueued;
}

describe("50 parallel enqueues of one key on an empty queue", () => {
  it.each(["replace", "keep"])("leave one pending job (%s)", async (merge) => {
    const ids = Array.from({ length: 50 }, () => newId());
    const calls = ids.map((id, payload) => [keyed({ payload, merge, ...bareId(id) })]);
    const enqueued = (await Promise.all(calls.map((jobs) => bareEnqueue(crowd, jobs)))).flat();
    const pending = await liveJobs(pool);
    expect(pending).toHaveLength(1);
    expect(new Set(enqueued.map(({ id }) => id))).toEqual(new Set([pending[0]?.id]));
    expect(enqueued.filter(({ outcome }) => outcome === "enqueued")).toHaveLength(1);
    await expectInvariants(pool, { enqueued: ids });
  });

  it("leave one also when every other transaction rolls back", async () => {
    const ids = Array.from({ length: 50 }, () => newId());
    await Promise.all(
      ids.map((id, payload) =>
        inTransaction(
          [keyed({ payload, ...bareId(id) })],
          payload % 2 === 0 ? "commit" : "rollback",
        ),
      ),
    );
    const pending = await liveJobs(pool);
    expect(pending).toHaveLength(1);
    expect(Number(pending[0]?.payload) % 2).toBe(0);
    await expectInvariants(pool, { enqueued: ids.filter((_, index) => index % 2 === 0) });
  });

  it("leave none when all of them roll back", async () => {
    await Promise.all(Array.from({ length: 50 }, () => inTransaction([keyed()], "rollback")));
    expect(await liveJobs(pool)).toEqual([]);
  });

  it("of ten keys each leave ten, whatever the order of keys in a call", async () => {
    const keys = Array.from({ length: 10 }, (_, n) => keyed({ dedup_key: `${n}` }));
    const call = (n: number) => (n % 2 === 0 ? keys : [...keys].reverse());
    await Promise.all(Array.from({ length: 50 }, (_, n) => bareEnqueue(crowd, call(n))));
    expect(await liveJobs(pool)).toHaveLength(10);
  });
});

it("50 parallel enqueues of one new kind make one number for it", async () => {
  await Promise.all(Array.from({ length: 50 }, () => bareEnqueue(crowd, [{ kind: "fresh" }])));
  const { rows } = await pool.query(
    "select count(*)::int as n from venturi_kinds where name = 'fresh'",
  );
  expect(rows).toEqual([{ n: 1 }]);
  expect(await liveJobs(pool)).toHaveLength(50);
});

it("50 parallel repeats of one id leave one job, and fail in no way that a repeat would not mend", async () => {
  const id = bareId();
  const results = await Promise.allSettled(
    Array.from({ length: 50 }, () => bareEnqueue(crowd, [{ kind: "k", ...id }])),
  );
  for (const result of results)
    if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "23505" });
  expect(await liveJobs(pool)).toHaveLength(1);
  expect(await bareEnqueue(crowd, [{ kind: "k", ...id }])).toMatchObject([{ outcome: "repeated" }]);
});

it("a pending job of the key that is claimed meanwhile is not merged into", async () => {
  const [first] = await bareEnqueue(pool, [keyed({ payload: 1 })]);
  const claimer = await pool.connect();
  await claimer.query("begin");
  await claimer.query(`update venturi_queue set claimed_by = 7, claimed_at = now(),
    lease_expires_at = now() + interval '1 h', run_count = 1`);
  const merger = await crowd.connect();
  const [{ pid }] = (await merger.query("select pg_backend_pid() as pid")).rows;
  const merging = bareEnqueue(merger, [keyed({ payload: 2 })]);
  const state = "select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'";
  await until(async () => (await pool.query(state, [pid])).rows.length === 1);
  await claimer.query("commit");
  claimer.release();
  expect(await merging).toMatchObject([{ outcome: "enqueued" }]);
  merger.release();
  expect((await liveJobs(pool)).map(({ id, payload }) => [id === first?.id, payload])).toEqual([
    [true, 1],
    [false, 2],
  ]);
});

it("two calls of 20,000 keys in opposite orders do not deadlock", async () => {
  const jobs = Array.from({ length: 20_000 }, (_, n) =>
    keyed({ dedup_key: `key ${n}`, payload: n }),
  );
  const [one, other] = await Promise.all([
    bareEnqueue(crowd, jobs),
    bareEnqueue(crowd, [...jobs].reverse()),
  ]);
  const { rows } = await pool.query("select count(*)::int as n from venturi_queue");
  expect(rows).toEqual([{ n: 20_000 }]);
  const outcomes = [one, other].map((enqueued) => new Set(enqueued.map(({ outcome }) => outcome)));
  expect(outcomes).toContainEqual(new Set(["enqueued"]));
  expect(outcomes).toContainEqual(new Set(["replaced"]));
}, 60_000);

describe.each(["repeatable read", "serializable"])("a %s transaction", (level) => {
  /** A client in a transaction whose snapshot has been taken. */
  async function begun() {
    const client = await crowd.connect();
    await client.query(`begin isolation level ${level}; select count(*) from venturi_queue`);
    return client;
  }

  it("fails with 40001 rather than leave two jobs of a key", async () => {
    const client = await begun();
    await bareEnqueue(pool, [keyed()]);
    await expect(bareEnqueue(client, [keyed()])).rejects.toMatchObject({ code: "40001" });
    client.release(true);
    expect(await liveJobs(pool)).toHaveLength(1);
  });

  it("fails with 40001 where it races another of its kind", async () => {
    const [one, other] = [await begun(), await begun()];
    await bareEnqueue(one, [keyed()]);
    const waiting = bareEnqueue(other, [keyed()]);
    await Promise.all([
      one.query("commit"),
      expect(waiting).rejects.toMatchObject({ code: "40001" }),
    ]);
    one.release();
    other.release(true);
    expect(await liveJobs(pool)).toHaveLength(1);
  });

  it("fails with 40001 where the candidate has been claimed since", async () => {
    await bareEnqueue(pool, [keyed()]);
    const client = await begun();
    const worker = await startWorker(store, { kinds: ["k"] });
    const { jobs } = await store.claim(claimRequest(worker, ["k"]));
    await expect(bareEnqueue(client, [keyed()])).rejects.toMatchObject({ code: "40001" });
    client.release(true);
    await store.settle({ worker, settlements: jobs.map((job) => settlement(job)) });
  });

  it("merges within itself, and enqueues what has no key beside others", async () => {
    const client = await begun();
    await bareEnqueue(pool, [{ kind: "k" }]);
    await bareEnqueue(client, [keyed(), { kind: "k" }]);
    expect(await bareEnqueue(client, [keyed()])).toMatchObject([{ outcome: "replaced" }]);
    await client.query("commit");
    client.release();
    expect(await liveJobs(pool)).toHaveLength(3);
  });
});

describe("a transaction that has enqueued a keyed job and stays open", () => {
  let holder: pg.PoolClient;
  beforeEach(async () => {
    holder = await crowd.connect();
    await holder.query("begin");
    await bareEnqueue(holder, [keyed({ payload: 0 })]);
  });
  afterEach(async () => {
    await holder.query("rollback");
    holder.release();
  });

  /** A session that waits for 100 ms at most. */
  async function impatient<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await crowd.connect();
    await client.query("set lock_timeout = '100ms'");
    try {
      return await work(client);
    } finally {
      await client.query("reset lock_timeout");
      client.release();
    }
  }

  it("makes an enqueue of its key fail after the session's lock_timeout, with a hint", async () => {
    const failing = impatient((client) => bareEnqueue(client, [keyed({ payload: 1 })]));
    await expect(failing).rejects.toMatchObject({
      code: "55P03",
      message: expect.stringContaining("has enqueued a job with this key"),
      hint: expect.stringContaining("never wait inside of it"),
    });
  });

  it("lets jobs without a key pass", async () => {
    const jobs = await impatient((client) => bareEnqueue(client, [{ kind: "k", payload: 1 }]));
    expect(jobs).toHaveLength(1);
  });

  it("bounds the wait also where the session sets no limit, which stays as it was", async () => {
    const { rows } = await pool.query(
      `select pg_get_function_arguments('venturi_lock_keys_v1'::regproc) as arguments`,
    );
    expect(rows[0]?.arguments).toContain("longest text DEFAULT '30s'");
    const client = await crowd.connect();
    try {
      const { rows: held } = await holder.query(
        "select classid::bigint::bit(32)::integer as class, objid::integer as bucket from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
      );
      const values = [held[0]?.class, [held[0]?.bucket]];
      const waiting = client.query("select venturi_lock_keys_v1($1, $2, '100ms')", values);
      await expect(waiting).rejects.toMatchObject({ code: "55P03" });
      await bareEnqueue(client, [keyed({ dedup_key: "another", payload: 1 })]);
      const { rows: left } = await client.query("show lock_timeout");
      expect(left[0]?.lock_timeout).toBe("0");
    } finally {
      client.release();
    }
  });
});
