import { Backoff, createJobIds, defineTask, Merge, Outcome } from "@venturi/core";
import { type OperatorQueue, Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import pg from "pg";
import * as v from "valibot";
import { afterEach, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { running } from "./testing/running.ts";
import { until } from "./testing/signals.ts";

const { url, pool } = await testDatabase();
const payload = v.object({ n: v.number() });
const quick = new Backoff({ base: 1, cap: 1 });
const Mixed = defineTask({ kind: "mixed", payload, backoff: quick });
const Sum = defineTask({
  kind: "sum",
  payload,
  dedupKey: () => "all",
  merge: (incoming, existing) => Merge.with({ n: incoming.n + existing.payload.n }),
});

expectNoWarnings();
afterEach(() => expectInvariants(pool));

/** At one moment: what is claimed may be pending a moment later. */
async function isDone(operator: Pick<OperatorQueue, "stats">): Promise<boolean> {
  const { pendingByKind, claimed } = await operator.stats();
  return pendingByKind["mixed"] === undefined && claimed === 0;
}

/** Jobs that complete, pause or fail once; merges beside them, and everything that an operator does. */
async function liveOn(
  shared: pg.Pool,
  { jobs, preparedStatements }: { jobs: number; preparedStatements: boolean },
): Promise<void> {
  const store = new PostgresStore({ pool: shared, preparedStatements, listen: false });
  await store.migrate();
  const queue = new Queue(shared, { preparedStatements });
  const operator = new Queue(store);
  const worker = new Worker(store, { concurrency: 8, pollMax: 50 })
    .register(Mixed, async ({ n }, ctx) => {
      await ctx.history();
      await queue.enqueue(Sum({ n: 1 }), { delay: "1h" });
      if (ctx.runCount === 1 && n % 3 === 1) return Outcome.pauseFor(1);
      if (ctx.runCount === 1 && n % 3 === 2) throw new Error("once");
      return Outcome.completed();
    })
    .register(Sum, () => undefined);
  const ids = await queue.enqueueMany(Array.from({ length: jobs }, (_, n) => Mixed({ n })));
  await running(worker, () => until(() => isDone(operator), { withinMs: 20_000 }));
  for (const id of ids) expect(await operator.job(id)).toMatchObject({ status: "completed" });
  const [sum] = (await operator.jobs({ kind: "sum" })).jobs;
  // Each run adds one; of three jobs one completes at once, the others come twice.
  const runs = 2 * jobs - Math.ceil(jobs / 3);
  expect(sum).toMatchObject({ payload: { n: runs } });
  expect(await operator.cancel(sum?.id ?? "")).toBe(true);
  expect(await operator.cleanup({ finishedBefore: new Date(Date.now() + 60_000) })).toBe(jobs + 1);
}

test("a pool of one connection serves producer, worker and operator, whatever they do at once", async () => {
  const shared = new pg.Pool({ connectionString: url, max: 1 });
  await liveOn(shared, { jobs: 50, preparedStatements: true });
  await shared.end();
});

test("each statement may meet another server process, as behind a pooler in transaction mode", async () => {
  const shared = new pg.Pool({ connectionString: url, max: 4, maxUses: 1 });
  await liveOn(shared, { jobs: 12, preparedStatements: false });
  await shared.end();
});

test("handlers that hold every connection of a shared pool for a while make settling wait, not fail", async () => {
  const shared = new pg.Pool({ connectionString: url, max: 4 });
  const store = new PostgresStore({ pool: shared });
  const queue = new Queue(store);
  const Greedy = defineTask({ kind: "greedy", payload });
  const ids = await queue.enqueueMany(Array.from({ length: 12 }, (_, n) => Greedy({ n })));
  const worker = new Worker(store, { concurrency: 4 }).register(Greedy, async () => {
    const client = await shared.connect();
    await client.query("select pg_sleep(0.1)");
    client.release();
  });
  await running(worker, () =>
    until(async () => (await queue.jobs({ ids, status: "completed" })).jobs.length === 12),
  );
  for (const id of ids) {
    expect(await queue.job(id)).toMatchObject({ runCount: 1, failureCount: 0 });
    expect(await queue.journal(id)).toHaveLength(1);
  }
  await shared.end();
});

test("server processes that are killed again and again, at any moment, cost no job and no entry", async () => {
  const application = "killed again and again";
  const shared = new pg.Pool({ connectionString: url, application_name: application, max: 4 });
  const store = new PostgresStore({ pool: shared });
  const queue = new Queue(shared);
  const operator = new Queue(new PostgresStore({ pool }));
  let jobs = 0;
  const worker = new Worker(store, { concurrency: 16, workerTimeout: 2_000 })
    .register(Mixed, ({ n }, ctx) => {
      if (ctx.runCount > 1 || n % 3 === 0) return;
      if (n % 3 === 2) throw new Error("once");
      return Outcome.pauseFor(1);
    })
    .register(Sum, () => undefined);
  const sure = async <T>(call: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (!(error as { isRetryable?: boolean }).isRetryable) throw error;
      }
    }
  };
  let kills = 0;
  let isOver = false;
  const killing = (async () => {
    while (!isOver) {
      const { rowCount } = await pool.query(
        `select pg_terminate_backend(pid) from (select pid from pg_stat_activity
         where application_name = $1 order by random() limit 1) victim`,
        [application],
      );
      kills += rowCount ?? 0;
      await new Promise((resolve) => setTimeout(resolve, 60 * Math.random()));
    }
  })();
  await running(worker, async () => {
    const newId = createJobIds({ now: Date.now, random: Math.random });
    for (; jobs < 100 || kills < 20; jobs += 1) {
      const n = jobs;
      const id = newId();
      await sure(() => queue.enqueue(Mixed({ n }), { id }));
      if (n % 10 !== 0) continue;
      const sumId = newId();
      await sure(() => queue.enqueue(Sum({ n: 1 }), { id: sumId, delay: "1h" }));
    }
    isOver = true;
    await killing;
    await until(() => isDone(operator), { withinMs: 20_000 });
  });
  const { rows } = await pool.query(
    `select count(*)::int as completed from venturi_journal j join venturi_kinds k on k.id = j.kind_id
     where j.outcome = 'c' and k.name = 'mixed'`,
  );
  expect(rows).toEqual([{ completed: jobs }]);
  const [sum] = (await operator.jobs({ kind: "sum", status: "pending" })).jobs;
  expect(sum).toMatchObject({ payload: { n: Math.ceil(jobs / 10) } });
  await shared.end();
});
