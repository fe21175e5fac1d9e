import { isJobId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { removeJobs } from "../testing/backlog.ts";
import { bareEnqueue, bareId, liveJobs } from "../testing/bare-sql.ts";
import { newId } from "../testing/store-fixture.ts";

const { directUrl, pool } = await testDatabase();

beforeEach(() => removeJobs(pool));

const only = async () => {
  const jobs = await liveJobs(pool);
  expect(jobs).toHaveLength(1);
  return jobs[0] as (typeof jobs)[0];
};

/** Milliseconds by which an instant lies behind the creation of the only job. */
const dueAfter = ({ visible_at, created_at }: { visible_at: Date; created_at: Date }) =>
  visible_at.getTime() - created_at.getTime();

describe("a job with its kind alone", () => {
  it("gets an id that leads with the database's time, and is due at once", async () => {
    const [enqueued] = await bareEnqueue(pool, [{ kind: "k" }]);
    expect(enqueued).toEqual({ ord: 1, id: expect.toSatisfy(isJobId), outcome: "enqueued" });
    const job = await only();
    expect(job).toMatchObject({
      id: enqueued?.id,
      kind: "k",
      payload: null,
      headers: null,
      priority: 1,
      dedup_key: null,
      scheduled: false,
      lease_ms: null,
      run_count: 0,
      claimed_by: null,
      carry: null,
    });
    expect(job.visible_at).toEqual(job.created_at);
    const { rows } = await pool.query(
      `select abs(('x' || substr(replace(id::text, '-', ''), 1, 12))::bit(48)::bigint
        - floor(extract(epoch from created_at) * 1000)) <= 1 as same from venturi_jobs`,
    );
    expect(rows).toEqual([{ same: true }]);
  });
});

describe("each member is stored", () => {
  it.each([
    ["kind", { kind: "x".repeat(200) }, { kind: "x".repeat(200) }],
    ["kind in characters, not bytes", { kind: "🚲".repeat(200) }, { kind: "🚲".repeat(200) }],
    [
      "payload",
      { payload: { a: [1, "2", null], b: {} } },
      { payload: { a: [1, "2", null], b: {} } },
    ],
    ["payload that is an array", { payload: [[1], []] }, { payload: [[1], []] }],
    ["payload that is text", { payload: "\\u0000 \" '" }, { payload: "\\u0000 \" '" }],
    ["payload null", { payload: null }, { payload: null }],
    ["payload false", { payload: false }, { payload: false }],
    ["priority high", { priority: "high" }, { priority: 0 }],
    ["priority normal", { priority: "normal" }, { priority: 1 }],
    ["priority low", { priority: "low" }, { priority: 2 }],
    ["dedup_key", { dedup_key: "k".repeat(512) }, { dedup_key: "k".repeat(512) }],
    ["dedup_key in characters", { dedup_key: "ü🚲".repeat(256) }, { dedup_key: "ü🚲".repeat(256) }],
    ["an empty dedup_key", { dedup_key: "" }, { dedup_key: "" }],
    ["dedup_key null", { dedup_key: null }, { dedup_key: null }],
    ["lease_ms", { lease_ms: 1234.5 }, { lease_ms: 1234.5 }],
    ["lease_ms null", { lease_ms: null }, { lease_ms: null }],
    ["headers", { headers: { a: "1", "": "" } }, { headers: { a: "1", "": "" } }],
    ["headers null", { headers: null }, { headers: null }],
  ])("%s", async (_, member, stored) => {
    await bareEnqueue(pool, [{ kind: "k", ...member }]);
    expect(await only()).toMatchObject(stored);
  });

  it("id", async () => {
    const id = newId();
    expect(await bareEnqueue(pool, [{ kind: "k", ...bareId(id) }])).toMatchObject([{ id }]);
    expect(await only()).toMatchObject({ id });
  });

  it.each([
    [0, 0],
    [-5, 0],
    [1500, 1500],
    ["-Infinity", 0],
  ])("delay_ms %j makes it due %d ms after now", async (delay_ms, ms) => {
    await bareEnqueue(pool, [{ kind: "k", delay_ms }]);
    const job = await only();
    expect(dueAfter(job)).toBe(ms);
    expect(job.scheduled).toBe(ms > 0);
  });

  it("run_at in the future, to the microsecond", async () => {
    await bareEnqueue(pool, [{ kind: "k", run_at: "2999-12-31T23:59:59.123456Z" }]);
    expect(await only()).toMatchObject({ scheduled: true });
    const { rows } = await pool.query(
      "select visible_at = '2999-12-31T23:59:59.123456Z' as exact from venturi_queue",
    );
    expect(rows).toEqual([{ exact: true }]);
  });

  it.each(["1970-01-01T00:00:00Z", "-infinity"])(
    "run_at %s, long past, means now",
    async (run_at) => {
      await bareEnqueue(pool, [{ kind: "k", run_at }]);
      const job = await only();
      expect(dueAfter(job)).toBe(0);
      expect(job.scheduled).toBe(false);
    },
  );

  it.each([
    { delay_ms: 1e300 },
    { delay_ms: "Infinity" },
    { delay_ms: 2 ** 53 },
    { run_at: "infinity" },
    { run_at: "12024-01-01T00:00:00Z" },
  ])("%j saturates to a far date that JavaScript holds", async (member) => {
    await bareEnqueue(pool, [{ kind: "k", ...member }]);
    const { visible_at } = await only();
    expect(visible_at.getUTCFullYear()).toBeGreaterThan(9900);
    expect(visible_at.getTime()).toBeLessThanOrEqual(Date.UTC(9999, 0, 1));
  });

  it("an endless lease is cut to one that a claim can hold", async () => {
    await bareEnqueue(pool, [
      { kind: "k", lease_ms: "Infinity" },
      { kind: "k", lease_ms: 1e300 },
    ]);
    const { rows } = await pool.query(
      `select isfinite(now() + make_interval(secs => lease_ms / 1000)) as ok from venturi_queue`,
    );
    expect(rows).toEqual([{ ok: true }, { ok: true }]);
  });
});

describe("large values", () => {
  it("a payload of 5 MB comes back as it went in", async () => {
    const payload = {
      text: "é".repeat(1_250_000),
      n: Array.from({ length: 250_000 }, (_, i) => i),
    };
    await bareEnqueue(pool, [{ kind: "k".repeat(200), dedup_key: "d".repeat(512), payload }]);
    expect((await only()).payload).toEqual(payload);
  });

  it("keys of 512 random characters fit into the index", async () => {
    const key = () =>
      String.fromCodePoint(
        ...Array.from({ length: 512 }, () => 0x1f000 + Math.floor(Math.random() * 0xfff)),
      );
    const jobs = Array.from({ length: 50 }, () => ({ kind: "k", dedup_key: key() }));
    await bareEnqueue(pool, jobs);
    expect((await liveJobs(pool)).map(({ dedup_key }) => dedup_key)).toEqual(
      jobs.map(({ dedup_key }) => dedup_key),
    );
  });
});

describe("many jobs in one call", () => {
  it("answer in the order given, and arrive in it", async () => {
    const jobs = Array.from({ length: 500 }, (_, n) => ({
      kind: `k${n % 7}`,
      payload: n,
      ...bareId(),
      ...(n % 3 === 0 ? { dedup_key: `${n}` } : {}),
      ...(n % 5 === 0 ? { delay_ms: 1000 } : {}),
    }));
    const enqueued = await bareEnqueue(pool, jobs);
    expect(enqueued.map(({ ord }) => ord)).toEqual(jobs.map((_, index) => index + 1));
    const stored = await liveJobs(pool);
    expect(stored.map(({ id }) => id)).toEqual(enqueued.map(({ id }) => id));
    expect(stored.map(({ payload }) => payload)).toEqual(jobs.map(({ payload }) => payload));
  });

  it("arrive in the order given also where some of them meet", async () => {
    await bareEnqueue(pool, [{ kind: "k", payload: 0, dedup_key: "met" }]);
    const keys = ["a", null, "a", null, "met", "b", null, "a"];
    await bareEnqueue(
      pool,
      keys.map((dedup_key, index) => ({
        kind: "k",
        payload: index + 1,
        dedup_key,
        ...(dedup_key === "a" ? { merge: "independent" } : {}),
      })),
    );
    expect((await liveJobs(pool)).map(({ payload }) => payload)).toEqual([5, 1, 2, 3, 4, 6, 7, 8]);
  });

  it("make none of their kinds' numbers twice, nor skip any", async () => {
    await pool.query("select setval(pg_get_serial_sequence('venturi_kinds', 'id'), 1000)");
    for (let i = 0; i < 10; i += 1) await bareEnqueue(pool, [{ kind: "n1" }, { kind: "n1" }]);
    await bareEnqueue(pool, [{ kind: "n2" }]);
    const { rows } = await pool.query(
      "select id from venturi_kinds where name like 'n_' order by 1",
    );
    expect(rows).toEqual([{ id: 1001 }, { id: 1002 }]);
  });

  it("of none at all do nothing", async () => {
    expect(await bareEnqueue(pool, [])).toEqual([]);
    expect(await liveJobs(pool)).toEqual([]);
  });
});

describe("input that is refused", () => {
  it.each([
    ["kind", {}],
    ["kind", { kind: null }],
    ["kind", { kind: "" }],
    ["kind", { kind: "x".repeat(201) }],
    ["kind", { kind: "line\nbreak" }],
    ["kind", { kind: "\u0085" }],
    ["priority", { kind: "k", priority: "urgent" }],
    ["priority", { kind: "k", priority: 1 }],
    ["dedup_key", { kind: "k", dedup_key: "x".repeat(513) }],
    ["merge", { kind: "k", dedup_key: "1", merge: "with" }],
    ["delay_ms and run_at", { kind: "k", delay_ms: 1, run_at: "2999-01-01T00:00:00Z" }],
    ["delay_ms", { kind: "k", delay_ms: "NaN" }],
    ["lease_ms", { kind: "k", lease_ms: "NaN" }],
    ["lease_ms", { kind: "k", lease_ms: -1 }],
    ["headers", { kind: "k", headers: ["a"] }],
    ["headers", { kind: "k", headers: "a" }],
    ["headers", { kind: "k", headers: { a: 5 } }],
    ["headers", { kind: "k", headers: { a: "1", b: ["1"] } }],
    ["uuid", { kind: "k", id: "01ARZ3NDEKTSV4RRFFQ69G5FAV" }],
    ["double precision", { kind: "k", delay_ms: "soon" }],
    ["double precision", { kind: "k", delay_ms: "1e999" }],
    ["timestamp with time zone", { kind: "k", run_at: "soon" }],
    ["array of objects", 5],
    ["array of objects", null],
  ])("says which job it is (%s: %j), and writes nothing", async (what, bad) => {
    const good = { kind: "good", dedup_key: "1" };
    const many = Array.from({ length: 9 }, () => ({ kind: "good" }));
    const call = bareEnqueue(pool, [good, ...many, bad, {}]);
    await expect(call).rejects.toMatchObject({
      code: "VT002",
      message: expect.stringMatching(`^cannot enqueue job 11: .*${what}`),
    });
    expect(await liveJobs(pool)).toEqual([]);
  });

  it.each([[{ kind: "k" }], ["k"], [1], [null]])("%j is no array of jobs", async (jobs) => {
    await expect(bareEnqueue(pool, jobs)).rejects.toMatchObject({ code: "VT002" });
  });

  it("the first of several is named", async () => {
    const jobs = Array.from({ length: 12 }, (_, index) => (index === 0 ? { kind: "k" } : {}));
    await expect(bareEnqueue(pool, jobs)).rejects.toThrow("cannot enqueue job 2: kind");
  });

  it("a conflict in the last place undoes the first", async () => {
    const conflict = { ...bareId(), kind: "k" };
    await bareEnqueue(pool, [conflict]);
    const jobs = [{ kind: "new" }, { kind: "new", dedup_key: "1" }, { ...conflict, kind: "other" }];
    await expect(bareEnqueue(pool, jobs)).rejects.toMatchObject({ code: "VT001" });
    expect((await liveJobs(pool)).map(({ kind }) => kind)).toEqual(["k"]);
  });
});

describe("the clock", () => {
  it("is the statement's, not the start of the transaction around it", async () => {
    const client = await pool.connect();
    await client.query("begin; select now(), pg_sleep(0.3)");
    await bareEnqueue(client, [{ kind: "k" }, { kind: "k", delay_ms: 1000 }]);
    await client.query("commit");
    client.release();
    const { rows } = await pool.query(
      `select b.xmin = q.xmin as one_transaction, b.created_at > now() - interval '250 ms' as fresh
      from venturi_jobs b join venturi_queue q on q.job_id = b.id`,
    );
    expect(rows).toEqual(Array(2).fill({ one_transaction: true, fresh: true }));
    expect((await liveJobs(pool)).map(dueAfter)).toEqual([0, 1000]);
  });

  it("is the database's: an id of another day changes nothing", async () => {
    await bareEnqueue(pool, [{ kind: "k", id: "ffffffff-ffff-ffff-ffff-ffffffffffff" }]);
    const job = await only();
    expect(job.id).toBe("7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
    expect(dueAfter(job)).toBe(0);
  });
});

describe("a role that may only call the function", () => {
  const role = `venturi_producer_${process.pid}`;
  const producer = new pg.Pool({ connectionString: directUrl, options: `-c role=${role}` });
  producer.on("error", () => undefined);
  afterAll(async () => {
    await producer.end();
    await pool.query(`drop owned by ${role}; drop role ${role}`);
  });

  it("can produce, whatever its search_path and whatever lies in it", async () => {
    await pool.query(`create role ${role}; grant usage on schema public to ${role};
      create schema evil; grant usage, create on schema evil to ${role};
      create function evil.hashtext(text) returns int language sql as 'select 1/0';
      create table evil.venturi_jobs (); create table evil.unnest ()`);
    await producer.query("select set_config('search_path', 'evil, pg_catalog', false)");
    const client = await producer.connect();
    try {
      await client.query("set search_path = evil, pg_catalog");
      const { rows } = await client.query(
        `select outcome from public.venturi_enqueue_v1('[{"kind":"k","dedup_key":"1"}]')`,
      );
      expect(rows).toEqual([{ outcome: "enqueued" }]);
      await client.query("reset search_path");
      await expect(client.query("select from public.venturi_jobs")).rejects.toThrow("permission");
    } finally {
      client.release();
    }
    await expectInvariants(pool);
  });
});
