import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import { TcpProxy } from "@venturi-tooling/testing/tcp-proxy";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import type { PgClientLike, PgPoolLike } from "./pg-like.ts";
import { PostgresStore } from "./postgres-store.ts";
import { failureOf } from "./testing/failure-of.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import {
  claimRequest,
  enqueue,
  job,
  newId,
  settlement,
  startWorker,
} from "./testing/store-fixture.ts";
import { until } from "./testing/until.ts";

const { url, pool } = await testDatabase();
expectNoWarnings();
const quotedName = pg.escapeIdentifier(decodeURIComponent(new URL(url).pathname.slice(1)));
const pools: pg.Pool[] = [];

afterEach(() => expectInvariants(pool));
afterAll(() => Promise.all(pools.map((some) => some.end())));

function makePool(application_name: string, config: pg.PoolConfig = {}): pg.Pool {
  const made = new pg.Pool({ connectionString: url, application_name, max: 3, ...config });
  pools.push(made);
  return made;
}

const terminate = (application: string) =>
  pool.query(
    "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and application_name = $1",
    [application],
  );

describe("a database that is read-only for a while", () => {
  const setReadOnly = (on: boolean) =>
    pool.query(
      `alter database ${quotedName} ${on ? "set" : "reset"} default_transaction_read_only${on ? " = on" : ""}`,
    );

  it("makes writes fail with 25006, retryable; afterwards all works on, over the same pool", async () => {
    const store = new PostgresStore({ pool: makePool("blip") });
    const [id] = await enqueue(store, job("blip"));
    const worker = await startWorker(store, { kinds: ["blip"] });
    const request = claimRequest(worker, ["blip"]);
    const { jobs } = await store.claim(request);
    const settlements = jobs.map((claimed) => settlement(claimed));
    await setReadOnly(true);
    await terminate("blip");
    const writes = [
      () => store.enqueue({ jobs: [job("blip")] }),
      () => store.claim(request),
      () => store.settle({ worker, settlements }),
      () => startWorker(store),
    ];
    for (const write of writes) {
      const error = await failureOf(write());
      // The first of them may meet a connection that has just been ended.
      if (error.sqlState !== undefined)
        expect(error).toMatchObject({ code: "database", sqlState: "25006" });
      expect(error.isRetryable).toBe(true);
    }
    expect(await failureOf(store.enqueue({ jobs: [job("blip")] }))).toMatchObject({
      sqlState: "25006",
    });
    expect(await store.findJob({ id: String(id) })).toMatchObject({ job: { status: "claimed" } });
    await setReadOnly(false);
    // Sessions that were opened meanwhile stay read-only, and have been given up at their first failure.
    const verdicts = async () => (await store.settle({ worker, settlements })).verdicts;
    await until(async () => (await verdicts().catch(() => []))[0] === "applied", 5_000);
    await enqueue(store, job("blip"));
    expect((await store.claim(request)).jobs).toHaveLength(1);
  });
});

describe("a backend that is killed in the middle of a transaction", () => {
  /** A pool whose statements run in transactions, and whose backend dies just before a statement of a kind. */
  function dyingPool(lent: pg.Pool, before: RegExp): PgPoolLike & { deaths: number } {
    const dying = {
      deaths: 0,
      query: (query: never) => lent.query(query),
      on: (event: "error", listener: (error: Error) => void) => lent.on(event, listener),
      end: () => lent.end(),
      async connect(): Promise<PgClientLike> {
        const client = await lent.connect();
        return {
          query: async (query) => {
            if (dying.deaths < 3 && before.test(query.text)) {
              dying.deaths += 1;
              const { processID } = client as unknown as { processID: number };
              await pool.query("select pg_terminate_backend($1, 5000)", [processID]);
            }
            return client.query(query as never);
          },
          on: (event, listener) => client.on(event, listener),
          removeListener: (event, listener) => client.removeListener(event, listener),
          release: (error) => client.release(error),
        };
      },
    };
    return dying;
  }

  const strict = { options: "-c default_transaction_isolation=serializable" };

  it.each([
    ["at BEGIN", /^begin/],
    ["after BEGIN", /^(?!begin|commit)/],
    ["at COMMIT", /^commit/],
  ])(
    "%s is replaced: the pool recovers, and nobody meets an aborted transaction",
    async (when, before) => {
      const lent = makePool(`dying ${when}`, strict);
      const dying = dyingPool(lent, before);
      const store = new PostgresStore({ pool: dying });
      const ids = Array.from({ length: 20 }, () => newId());
      const failures: string[] = [];
      const call = async (id: string) => {
        for (;;) {
          try {
            return await enqueue(store, job("dying", { id }));
          } catch (error) {
            expect(error).toMatchObject({ isRetryable: true });
            failures.push(String(error));
          }
        }
      };
      await Promise.all(ids.map(call));
      expect(failures).toHaveLength(3);
      expect(failures.filter((text) => text.includes("aborted"))).toEqual([]);
      expect(lent.waitingCount).toBe(0);
      expect(lent.idleCount).toBe(lent.totalCount);
      expect(lent.totalCount).toBeLessThanOrEqual(3);
      const stored = await Promise.all(ids.map((id) => store.findJob({ id })));
      expect(stored.filter((found) => found.job === null)).toEqual([]);
    },
  );

  it("while it waits for a lock is replaced too, under Kysely as well", async () => {
    for (const driver of ["pg", "kysely"]) {
      const lent = makePool(`waiting ${driver}`, strict);
      const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: lent }) });
      const store = driver === "pg" ? new PostgresStore({ pool: lent }) : new PostgresStore({ db });
      // Under Kysely the pool is out of the store's reach, so its owner has to listen.
      if (driver === "kysely") lent.on("error", () => undefined);
      await enqueue(store, job("waiting"));
      const blocker = await pool.connect();
      await blocker.query("begin; lock table venturi_jobs in exclusive mode");
      const calls = [1, 2, 3].map(() => failureOf(enqueue(store, job("waiting"))));
      const waiting =
        "select from pg_stat_activity where datname = current_database() and application_name = $1 and wait_event_type = 'Lock'";
      await until(async () => (await pool.query(waiting, [`waiting ${driver}`])).rows.length === 3);
      await terminate(`waiting ${driver}`);
      await blocker.query("commit");
      blocker.release();
      for (const error of await Promise.all(calls))
        expect(error).toMatchObject({ code: "enqueue-unknown", isRetryable: true });
      await Promise.all(Array.from({ length: 9 }, () => enqueue(store, job("waiting"))));
      expect(lent.idleCount).toBe(lent.totalCount);
    }
  });

  it("idle in the pool is logged once each, without secrets, and replaced", async () => {
    const lent = makePool("idle");
    const { logger, records } = recordingLogger();
    const stores = ["venturi", "other"].map(
      (prefix) => new PostgresStore({ pool: lent, prefix, logger }),
    );
    const [store] = stores as [PostgresStore, PostgresStore];
    await Promise.all([1, 2, 3].map(() => enqueue(store, job("idle"))));
    const idle = lent.totalCount;
    await terminate("idle");
    await until(() => lent.totalCount === 0);
    await enqueue(store, job("idle"));
    expect(records.map(({ level }) => level)).toEqual(Array(idle).fill("warn"));
    expect(JSON.stringify(records)).not.toContain(new URL(url).password);
    expect(JSON.stringify(records).length).toBeLessThan(300 * idle);
  });
});

describe("a statement that fails inside a transaction of the store's own", () => {
  it("leaves the connection to nobody", async () => {
    const lent = makePool("refused", {
      max: 1,
      options: "-c default_transaction_isolation=serializable",
    });
    const store = new PostgresStore({ pool: lent });
    const [id] = await enqueue(store, job("refused"));
    for (let i = 0; i < 3; i += 1) {
      const conflict = store.enqueue({ jobs: [job("other", { id: String(id) })] });
      expect(await failureOf(conflict)).toMatchObject({ code: "id-conflict" });
      await enqueue(store, job("refused"));
    }
  });
});

describe("a connection lost on the way", () => {
  it("makes every verb fail with an error that says whether to repeat it", async () => {
    const proxy = await TcpProxy.before(url);
    const lent = makePool("lost", { connectionString: proxy.url, max: 1 });
    const store = new PostgresStore({ pool: lent });
    const [id] = await enqueue(store, job("lost"));
    const worker = await startWorker(store, { kinds: ["lost"] });
    await store.claim(claimRequest(worker, ["absent"]));
    proxy.mode = "swallow";
    const calls: [string, Promise<unknown>][] = [
      ["enqueue-unknown", store.enqueue({ jobs: [job("lost")] })],
      ["database", store.claim(claimRequest(worker, ["lost"]))],
      ["database", store.findJob({ id: String(id) })],
    ];
    const failures = calls.map(([, call]) => failureOf(call));
    // The first is under way; the others wait for the one connection.
    await until(() => proxy.held > 0);
    proxy.mode = "refuse";
    proxy.cut();
    const errors = await Promise.all(failures);
    expect(errors.map(({ code }) => code)).toEqual(calls.map(([code]) => code));
    expect(errors.map(({ isRetryable }) => isRetryable)).toEqual(calls.map(() => true));
    proxy.mode = "pass";
    expect(await store.findJob({ id: String(id) })).toMatchObject({ job: { kind: "lost" } });
    await proxy.close();
  });
});

it("a connection is listened to before whoever asked for it has it", async () => {
  const listeners = async (some: pg.Pool) => {
    const counts: number[] = [];
    some.on("acquire", (client) => counts.push(client.listenerCount("error")));
    for (let round = 0; round < 3; round += 1) (await some.connect()).release();
    return counts;
  };
  const borrowed = makePool("venturi_heard");
  const store = new PostgresStore({ pool: borrowed });
  const unheard = await listeners(makePool("venturi_unheard"));
  expect(await listeners(borrowed)).toEqual(unheard.map((count) => count + 1));
  await store.close();
});

it("a logger that throws does not end the process when an idle connection is lost", async () => {
  const borrowed = makePool("venturi_thrower");
  const broken = () => {
    throw new Error("the logger broke");
  };
  const logger = { debug: broken, info: broken, warn: broken, error: broken };
  const store = new PostgresStore({ pool: borrowed, logger });
  expect(() => borrowed.emit("error", new Error("lost"), undefined as never)).not.toThrow();
  await store.close();
});
