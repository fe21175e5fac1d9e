import { readFile } from "node:fs/promises";
import { defineTask, type JobId, Merge } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import * as v from "valibot";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Worker } from "./index.ts";

// Runs the statements of the documentation as they stand there. Roles belong to the whole server, so each gets a
// suffix of its own.
const page = await readFile(new URL("../../../docs/operations/roles.md", import.meta.url), "utf8");
const suffix = `_${process.pid}`;
const names = ["owner", "worker", "producer", "reader", "operator"] as const;
const blocks = [...page.matchAll(/```sql\n(.*?)```/gs)].map(([, sql]) =>
  (sql as string).replace(/\bventuri_(owner|worker|producer|reader|operator)\b/g, `$&${suffix}`),
);

const { directUrl, pool } = await testDatabase({ migrated: false });
const pools = new Map(
  names.map((name) => [
    name,
    new pg.Pool({ connectionString: directUrl, options: `-c role=venturi_${name}${suffix}` }),
  ]),
);
const poolOf = (name: (typeof names)[number]) => pools.get(name) as pg.Pool;
const storeOf = (name: (typeof names)[number]) => new PostgresStore({ pool: poolOf(name) });

const payload = v.object({ n: v.number() });
const Plain = defineTask({ kind: "plain", payload });
const Sum = defineTask({
  kind: "sum",
  payload,
  dedupKey: () => "all",
  merge: (incoming, existing) => Merge.with({ n: incoming.n + existing.payload.n }),
});

const tables = "meta kinds jobs queue dead journal workers keys migrations".split(" ");
const writes = tables.flatMap((table) => [
  `delete from venturi_${table}`,
  `insert into venturi_${table} overriding system value select * from venturi_${table} limit 0`,
  `truncate venturi_${table}`,
  `drop table venturi_${table}`,
]);
const denied = { code: "42501" };

beforeAll(async () => {
  const [before, after] = blocks as [string, string];
  await pool.query(before);
  await storeOf("owner").migrate();
  await poolOf("owner").query(after);
});

afterAll(async () => {
  await Promise.all([...pools.values()].map((some) => some.end()));
  const all = names.map((name) => `venturi_${name}${suffix}`).join(", ");
  await pool.query(`drop owned by ${all}; drop role ${all}`);
});

it("the owner does everything", async () => {
  const store = storeOf("owner");
  const queue = new Queue(store);
  await store.migrate();
  await store.configure({ notify: true });
  const id = await queue.enqueue(Plain({ n: 1 }));
  const worker = new Worker(store).register(Plain, () => undefined);
  expect(await worker.runOnce()).toMatchObject({ completed: 1 });
  expect(await queue.job(id)).toMatchObject({ status: "completed" });
  expect(await queue.cleanup({ finishedBefore: new Date(Date.now() + 60_000) })).toBe(1);
});

describe("a producer", () => {
  it("enqueues: at once, later, many, merging by a function, and inside its own transaction", async () => {
    const queue = new Queue(poolOf("producer"));
    await queue.enqueue(Plain({ n: 1 }));
    await queue.enqueueAt(Plain({ n: 2 }), new Date(Date.now() + 3_600_000));
    const [first] = await queue.enqueueMany([Sum({ n: 1 }), Sum({ n: 2 })]);
    expect(await queue.enqueue(Sum({ n: 3 }))).toBe(first);
    const client = await poolOf("producer").connect();
    try {
      await client.query("begin");
      await queue.within(client).enqueue(Plain({ n: 3 }));
      await client.query("commit");
    } finally {
      client.release();
    }
    const { rows } = await pool.query("select payload->>'n' as n from venturi_jobs order by 1");
    expect(rows.map(({ n }) => n)).toEqual(["1", "2", "3", "6"]);
    await pool.query("truncate venturi_jobs, venturi_queue, venturi_journal");
  });

  it.each([
    ...writes,
    ...tables.map((table) => `select 1 from venturi_${table}`),
    "select 1 from venturi_job_history",
    "select nextval('venturi_queue_seq_seq')",
    "select venturi_complete_v1(1, gen_random_uuid(), 1, null, null)",
    "create table public.mine (a int)",
    "alter function venturi_enqueue_v1(jsonb) owner to current_user",
    "create or replace function venturi_clock() returns timestamptz language sql as 'select now()'",
  ])("cannot: %s", async (sql) => {
    await expect(poolOf("producer").query(sql)).rejects.toMatchObject(denied);
  });

  it("is told what it may not do", async () => {
    await expect(new Queue(storeOf("producer")).stats()).rejects.toMatchObject({
      code: "database",
      sqlState: "42501",
      message: expect.stringContaining("permission denied"),
    });
  });

  it("cannot put functions of its own in the place of those that the owner's call", async () => {
    // Functions are looked for in no temporary schema, and in no other that the owner may not use.
    await pool.query(`create schema mine authorization venturi_producer${suffix};
      grant usage on schema mine to public`);
    const client = await poolOf("producer").connect();
    try {
      await client.query("begin");
      await client.query(`create temporary table venturi_meta (notify boolean);
        create function mine.jsonb_typeof(jsonb) returns text language sql as 'select (1/0)::text';
        create function mine.hashtext(text) returns integer language sql as 'select 1/0';
        set local search_path = mine, pg_temp, pg_catalog`);
      const enqueued = await client.query(
        `select outcome from public.venturi_enqueue_v1('[{"kind":"sum","dedup_key":"all","headers":{"a":"b"}}]')`,
      );
      expect(enqueued.rows).toEqual([{ outcome: "enqueued" }]);
      const candidates = await client.query(
        `select ord from public.venturi_merge_candidates_v1('[{"kind":"sum","dedup_key":"all","wait":true}]')`,
      );
      expect(candidates.rows).toEqual([{ ord: 1 }]);
    } finally {
      await client.query("rollback");
      client.release();
      await pool.query("drop schema mine");
    }
  });
});

describe("a worker", () => {
  const queue = new Queue(poolOf("owner"));

  it("runs jobs: completes, pauses, fails, buries, recovers, reads its history and completes in a transaction", async () => {
    const ids = await queue.enqueueMany(
      [1, 2, 3, 4, 5].map((n) => ({ job: Plain({ n }), delay: n === 5 ? 1 : 0 })),
    );
    const store = storeOf("worker");
    const { worker: gone } = await store.startWorker({
      name: "gone",
      kinds: ["plain"],
      pollMaxMs: 1,
      workerTimeoutMs: 1,
      shortestLeaseMs: 1,
    });
    await store.claim({
      worker: gone,
      limit: 1,
      kinds: [{ kind: "plain", limit: 1, leaseMs: 1, backstop: null }],
      turn: { counter: 0, ratio: null },
    });
    const stale = await store.findStale({ holders: [], orphans: true, limit: 1 });
    expect(stale.claims.length).toBeLessThanOrEqual(1);
    const worker = new Worker(store, { backstop: 1 }).register(Plain, async ({ n }, ctx) => {
      await ctx.history();
      await ctx.extendLease("1h");
      if (n === 2) throw new Error("buried");
      if (n !== 3) return;
      const client = await poolOf("worker").connect();
      try {
        await client.query("begin");
        await ctx.complete(client);
        await client.query("commit");
      } finally {
        client.release();
      }
    });
    const stop = new AbortController();
    const ended = worker.run({ signal: stop.signal });
    const isOver = async () => {
      const { rows } = await pool.query(
        "select 1 from venturi_journal where outcome in ('c', 'd') having count(*) >= 5",
      );
      return rows.length > 0;
    };
    for (const until = Date.now() + 20_000; !(await isOver()); ) {
      if (Date.now() > until) throw new Error("the jobs have not come to their ends");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    stop.abort();
    await ended;
    expect(ids).toHaveLength(5);
  });

  it.each([
    "insert into venturi_jobs (id, created_at, kind_id, priority, payload) values (gen_random_uuid(), now(), 1, 1, '1')",
    "insert into venturi_queue (job_id, visible_at, kind_id, priority) values (gen_random_uuid(), now(), 1, 1)",
    "update venturi_jobs set payload = '1'",
    "delete from venturi_jobs",
    "update venturi_journal set note = ''",
    "delete from venturi_journal",
    "delete from venturi_dead",
    "delete from venturi_workers",
    "update venturi_meta set notify = false",
    "update venturi_kinds set paused_at = now()",
    "select venturi_enqueue_v1('[]')",
    "select venturi_merge_candidates_v1('[]')",
    "truncate venturi_queue",
    "create table public.mine (a int)",
  ])("cannot: %s", async (sql) => {
    await expect(poolOf("worker").query(sql)).rejects.toMatchObject(denied);
  });
});

describe("a reader", () => {
  it("looks at jobs, journals and numbers", async () => {
    const id = await new Queue(poolOf("owner")).enqueue(Plain({ n: 9 }), { delay: "1h" });
    const queue = new Queue(storeOf("reader"));
    expect(await queue.job(id)).toMatchObject({ payload: { n: 9 } });
    expect((await queue.jobs({ kind: "plain" })).jobs.length).toBeGreaterThan(0);
    await queue.journal(id);
    expect((await queue.stats()).scheduledByKind).toMatchObject({ plain: 1 });
    await poolOf("reader").query("select * from venturi_job_history");
    for (const change of [() => queue.cancel(id), () => queue.retry(id)])
      await expect(change()).rejects.toMatchObject({ code: "database", sqlState: "42501" });
  });

  it.each([
    ...writes,
    "select venturi_enqueue_v1('[]')",
    "select venturi_merge_candidates_v1('[]')",
    "select nextval('venturi_queue_seq_seq')",
    "select 1 from venturi_queue for update",
  ])("cannot: %s", async (sql) => {
    await expect(poolOf("reader").query(sql)).rejects.toMatchObject(denied);
  });
});

describe("an operator", () => {
  it("puts back, cancels and cleans up", async () => {
    const owners = new Queue(poolOf("owner"));
    const ids: JobId[] = [];
    for (const n of [1, 2]) ids.push(await owners.enqueue(Plain({ n })));
    const [dies, cancelled] = ids as [JobId, JobId];
    const worker = new Worker(storeOf("worker"), { backstop: 1 }).register(Plain, () => {
      throw new Error("dies");
    });
    const queue = new Queue(storeOf("operator"));
    expect(await queue.cancel(cancelled)).toBe(true);
    await worker.runOnce();
    expect(await queue.retry(dies)).toBe(true);
    expect(await queue.cancel(dies)).toBe(true);
    expect(
      await queue.cleanup({ finishedBefore: new Date(Date.now() + 60_000) }),
    ).toBeGreaterThanOrEqual(2);
  });

  it.each([
    "select venturi_enqueue_v1('[]')",
    "update venturi_meta set notify = false",
    "drop table venturi_jobs",
  ])("cannot: %s", async (sql) => {
    await expect(poolOf("operator").query(sql)).rejects.toMatchObject(denied);
  });
});
