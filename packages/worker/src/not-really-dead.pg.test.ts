import { defineTask } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import { TcpProxy } from "@venturi-tooling/testing/tcp-proxy";
import * as v from "valibot";
import { afterAll, afterEach, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { claimAndDie } from "./testing/gone.ts";
import { running } from "./testing/running.ts";
import { deferred, until } from "./testing/signals.ts";
import { wrapStore } from "./testing/wrap-store.ts";

const { pool, url } = await testDatabase();
const store = await PostgresStore.connect({ connectionString: url });
const queue = new Queue(store);
const payload = v.object({ n: v.number() });

expectNoWarnings();
afterAll(() => store.close());
afterEach(() => expectInvariants(pool));

const outcomes = async (id: string) => (await queue.journal(id)).map(({ outcome }) => outcome);
const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** A store that tells of its beats. */
function heard(of: PostgresStore) {
  const beats = { answered: 0, sawDead: 0 };
  const wrapped = wrapStore(of, (plain) => ({
    beat: async (request) => {
      const result = await plain.beat(request);
      beats.answered += 1;
      if (result.silent.some(({ dead }) => dead)) beats.sawDead += 1;
      return result;
    },
  }));
  return { beats, wrapped };
}

test("an outage that two workers share costs neither its jobs, though one beats more seldom than it lasts", async () => {
  const Task = defineTask({ kind: "shared_outage", payload });
  const Other = defineTask({ kind: "shared_outage_bystander", payload });
  const id = await queue.enqueue(Task({ n: 1 }));
  const [first, second] = [await TcpProxy.before(url), await TcpProxy.before(url)];
  const stores = [
    await PostgresStore.connect({ connectionString: first.url }),
    await PostgresStore.connect({ connectionString: second.url }),
  ] as const;
  const { beats, wrapped } = heard(stores[1]);
  const [started, finish] = [deferred(), deferred()];
  const brisk = new Worker(stores[0], { name: "brisk", workerTimeout: "3s" }).register(Task, () => {
    started.resolve();
    return finish.promise;
  });
  const calm = new Worker(wrapped, { workerTimeout: "60s" }).register(Other, () => undefined);
  await running([brisk, calm], async () => {
    await started.promise;
    // The calm one has been there for long enough to judge the other.
    await wait(3_500);
    await until(() => beats.answered > 1);
    for (const proxy of [first, second]) proxy.mode = "refuse";
    await until(async () => {
      const { rows } = await pool.query(
        "select from venturi_workers where name = 'brisk' and beat_at < clock_timestamp() - interval '3 s'",
      );
      return rows.length > 0;
    });
    // It comes back a moment before the other does, and sees it dead.
    second.mode = "pass";
    await until(() => beats.sawDead > 0);
    await wait(300);
    first.mode = "pass";
    await until(async () => {
      const { rows } = await pool.query(
        "select from venturi_workers where name = 'brisk' and beat_at > clock_timestamp() - interval '1 s'",
      );
      return rows.length > 0;
    });
    finish.resolve();
    await until(async () => (await outcomes(id)).length > 0);
  });
  expect(await outcomes(id)).toEqual(["completed"]);
  for (const each of stores) await each.close();
  for (const each of [first, second]) await each.close();
});

test("one that beats more seldom than a dead one had to takes its claims nevertheless, before their leases end", async () => {
  const Task = defineTask({ kind: "seldom", payload });
  const id = await queue.enqueue(Task({ n: 1 }));
  await claimAndDie(store, { kind: Task.kind, workerTimeoutMs: 1_500 });
  const worker = new Worker(store, { workerTimeout: "60s" }).register(Task, () => undefined);
  await running(worker, () => until(async () => (await outcomes(id)).includes("completed")));
  expect(await outcomes(id)).toEqual(["stale-recovered", "completed"]);
});

test("a database clock that is set forward costs nobody its jobs", async () => {
  const Task = defineTask({ kind: "set_forward", payload });
  await pool.query("create table venturi_test_shift as select interval '0' as by");
  await pool.query(`create or replace function venturi_clock() returns timestamptz
    language sql stable parallel safe as 'select statement_timestamp() + by from public.venturi_test_shift'`);
  const ids = await queue.enqueueMany([1, 2, 3, 4].map((n) => Task({ n })));
  const finish = deferred();
  let started = 0;
  const worked = [heard(store), heard(store)];
  const workers = worked.map(({ wrapped }) =>
    new Worker(wrapped, { concurrency: 2, workerTimeout: "3s" }).register(Task, () => {
      started += 1;
      return finish.promise;
    }),
  );
  await running(workers, async () => {
    await until(() => started === 4);
    await wait(3_500);
    for (const { beats } of worked) beats.answered = 0;
    await pool.query("update venturi_test_shift set by = '20 s'");
    await until(() => worked.every(({ beats }) => beats.answered > 2));
    expect(worked.some(({ beats }) => beats.sawDead > 0)).toBe(true);
    finish.resolve();
    await until(
      async () => (await queue.jobs({ ids, status: "completed" })).jobs.length === ids.length,
    );
  });
  for (const id of ids) expect(await outcomes(id)).toEqual(["completed"]);
});
