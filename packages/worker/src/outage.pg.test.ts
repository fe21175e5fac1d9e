import { defineTask, isVenturiError, VenturiError, type WorkerStore } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import { TcpProxy } from "@venturi-tooling/testing/tcp-proxy";
import pg from "pg";
import * as v from "valibot";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { WorkerProcess } from "./testing/child-process.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import { running } from "./testing/running.ts";
import { deferred, until } from "./testing/signals.ts";
import { wrapStore } from "./testing/wrap-store.ts";

const database = await testDatabase();
const store = await PostgresStore.connect({ connectionString: database.url });
const queue = new Queue(store);
const payload = v.object({ n: v.number() });

expectNoWarnings();
afterAll(() => store.close());
afterEach(() => expectInvariants(database.pool));

const outcomes = async (id: string) => (await queue.journal(id)).map(({ outcome }) => outcome);
const isCompleted = async (id: string) => (await queue.job(id))?.status === "completed";
const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const codeOf = (error: unknown) => (isVenturiError(error) ? error.code : undefined);
const reset = () => Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });

/** A proxy before the database, and a store that goes through it. */
async function behindProxy() {
  const proxy = await TcpProxy.before(database.url);
  const through = await PostgresStore.connect({ connectionString: proxy.url });
  const close = async () => {
    await through.close();
    await proxy.close();
  };
  return { proxy, through, close };
}

describe("a worker outlives", () => {
  test("the loss of all its connections, idle as they are, as a process of its own", async () => {
    const Task = defineTask({ kind: "terminated", payload });
    const proxy = await TcpProxy.before(database.url);
    const child = new WorkerProcess({
      url: proxy.url,
      kind: Task.kind,
      handlerMs: 0,
      worker: { pollMax: "1s", workerTimeout: "1s" },
    });
    await child.said("ready");
    const first = await queue.enqueue(Task({ n: 1 }));
    await until(() => isCompleted(first));
    await database.pool.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`);
    // And nobody answers for a while, as when a server starts again.
    proxy.mode = "refuse";
    await wait(2_000);
    proxy.mode = "pass";
    const second = await queue.enqueue(Task({ n: 2 }));
    await until(() => isCompleted(second), { withinMs: 8_000 });
    expect(child.isAlive).toBe(true);
    expect(child.errors).toBe("");
    expect(await child.kill("SIGTERM")).toBe(0);
    await proxy.close();
  });

  test("a database that refuses connections for seconds, without a flood of tries or of log records", async () => {
    const { proxy, through, close } = await behindProxy();
    const Task = defineTask({ kind: "refused", payload });
    const { logger, records } = recordingLogger();
    const worker = new Worker(through, { pollMax: "30s", logger }).register(Task, () => undefined);
    await running(worker, async () => {
      await wait(200);
      proxy.mode = "refuse";
      const before = proxy.accepted;
      await wait(4_000);
      expect(proxy.accepted - before).toBeLessThanOrEqual(16);
      const warnings = records.filter(({ level }) => level === "warn" || level === "error");
      expect(warnings.length).toBeLessThanOrEqual(6);
      expect(JSON.stringify(records)).not.toContain("connectionParameters");
      // Before the worker can look again, so that it need not be told.
      const id = await queue.enqueue(Task({ n: 1 }));
      proxy.mode = "pass";
      await until(() => isCompleted(id), { withinMs: 8_000 });
    });
    await close();
  });

  test("a network that swallows everything for a while", async () => {
    const { proxy, through, close } = await behindProxy();
    const Task = defineTask({ kind: "swallowed", payload });
    const worker = new Worker(through, { pollMax: 500, workerTimeout: "2s" }).register(
      Task,
      () => undefined,
    );
    await running(worker, async () => {
      await wait(200);
      proxy.mode = "swallow";
      await wait(3_000);
      proxy.mode = "pass";
      const id = await queue.enqueue(Task({ n: 1 }));
      await until(() => isCompleted(id), { withinMs: 10_000 });
    });
    await close();
  });

  test("a database that has become read-only for a while", async () => {
    const url = new URL(database.url);
    const name = decodeURIComponent(url.pathname.slice(1));
    const through = await PostgresStore.connect({ connectionString: database.url });
    const Task = defineTask({ kind: "read_only", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const [started, finish] = [deferred(), deferred()];
    const worker = new Worker(through, { pollMax: 200 }).register(Task, async (_, ctx) => {
      if (ctx.id !== id) return;
      started.resolve();
      await finish.promise;
    });
    const admin = new pg.Client({ connectionString: database.url });
    await admin.connect();
    await running(worker, async () => {
      await started.promise;
      await admin.query(
        `alter database ${pg.escapeIdentifier(name)} set default_transaction_read_only = on`,
      );
      await admin.query(`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`);
      finish.resolve();
      await wait(1_500);
      await admin.query("set transaction_read_only = off").catch(() => undefined);
      await admin.query("set default_transaction_read_only = off");
      await admin.query(
        `alter database ${pg.escapeIdentifier(name)} reset default_transaction_read_only`,
      );
      await until(() => isCompleted(id), { withinMs: 15_000 });
    });
    expect(await queue.job(id)).toMatchObject({ failureCount: 0, runCount: 1 });
    await admin.end();
    await through.close();
  });

  test("a database that is not there when it starts", async () => {
    const { proxy, through, close } = await behindProxy();
    const Task = defineTask({ kind: "absent", payload });
    proxy.mode = "refuse";
    const worker = new Worker(through, { pollMax: "30s" }).register(Task, () => undefined);
    await running(worker, async () => {
      await wait(1_000);
      // Before the worker can look again, so that it need not be told.
      const id = await queue.enqueue(Task({ n: 1 }));
      proxy.mode = "pass";
      await until(() => isCompleted(id), { withinMs: 8_000 });
    });
    await close();
  });
});

describe("a run is not failed by trouble with settling it", () => {
  /** A store whose first settlements go wrong. */
  const failing = (
    of: WorkerStore<never>,
    fail: (attempt: number, apply: () => Promise<unknown>) => Promise<void>,
  ) => {
    const state = { attempts: 0 };
    const wrapped = wrapStore(of, (plain) => ({
      settle: async (request) => {
        state.attempts += 1;
        await fail(state.attempts, () => plain.settle(request));
        return plain.settle(request);
      },
    }));
    return { state, wrapped };
  };

  test.each<[string, () => unknown]>([
    ["a lost connection", reset],
    ["a deadlock", () => new VenturiError("database", "deadlock detected", { sqlState: "40P01" })],
    ["a read-only server", () => new VenturiError("database", "read-only", { sqlState: "25006" })],
    ["a refused login", () => new VenturiError("database", "no login", { sqlState: "28000" })],
    ["a password that nobody could look up", () => new Error("Could not load credentials")],
  ])("twice %s: it is tried a third time, and completed once", async (name, error) => {
    const Task = defineTask({ kind: `settle ${name}`, payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const { state, wrapped } = failing(store, async (attempt) => {
      if (attempt <= 2) throw error();
    });
    let runs = 0;
    const worker = new Worker(wrapped).register(Task, () => {
      runs += 1;
    });
    await running(worker, () => until(() => isCompleted(id), { withinMs: 5_000 }));
    expect(state.attempts).toBe(3);
    expect(runs).toBe(1);
    expect(await queue.job(id)).toMatchObject({ failureCount: 0, runCount: 1 });
    expect(await outcomes(id)).toEqual(["completed"]);
  });

  test("an answer that is lost after the commit: the second try finds it done", async () => {
    const Task = defineTask({ kind: "lost_ack", payload });
    const id = await queue.enqueue(Task({ n: 1 }));
    const { logger, records } = recordingLogger();
    const { wrapped } = failing(store, async (attempt, apply) => {
      if (attempt > 1) return;
      await apply();
      throw reset();
    });
    const worker = new Worker(wrapped, { logger }).register(Task, () => undefined);
    expect(await worker.runOnce()).toMatchObject({ completed: 1 });
    expect(await outcomes(id)).toEqual(["completed"]);
    expect(records.filter(({ message }) => message.includes("no longer held"))).toEqual([]);
  });

  test("ten runs that end while all connections are taken are each completed once", async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 3 });
    const scarce = new PostgresStore({ pool });
    const Task = defineTask({ kind: "scarce", payload });
    const ids = await queue.enqueueMany(Array.from({ length: 10 }, (_, n) => Task({ n })));
    const finish = deferred();
    let started = 0;
    const worker = new Worker(scarce, { concurrency: 10 }).register(Task, async () => {
      started += 1;
      await finish.promise;
    });
    await running(worker, async () => {
      await until(() => started === 10);
      const taken = await Promise.all([1, 2, 3].map(() => pool.connect()));
      finish.resolve();
      await wait(1_000);
      for (const client of taken) client.release();
      await until(async () => (await queue.jobs({ ids, status: "completed" })).jobs.length === 10);
    });
    for (const id of ids) expect(await outcomes(id)).toEqual(["completed"]);
    await scarce.close();
    await pool.end();
  });

  test("runs that end while nobody can log in are completed once somebody can", async () => {
    const finish = deferred();
    let isDown = false;
    class RotatingPool extends pg.Pool {
      // biome-ignore lint/suspicious/noExplicitAny: overloads with and without a callback
      override connect(...callback: any[]): any {
        if (!isDown) return super.connect(...(callback as []));
        const error = new Error("Could not load credentials from any providers");
        if (callback.length === 0) return Promise.reject(error);
        return callback[0](error, undefined, () => undefined);
      }
    }
    const pool = new RotatingPool({ connectionString: database.url, max: 3 });
    const rotating = new PostgresStore({ pool });
    const Task = defineTask({ kind: "rotated", payload });
    const ids = await queue.enqueueMany([1, 2, 3].map((n) => Task({ n })));
    let runs = 0;
    const worker = new Worker(rotating, { concurrency: 3, backstop: 1 }).register(Task, () => {
      runs += 1;
      return finish.promise;
    });
    await running(worker, async () => {
      await until(() => runs === 3);
      isDown = true;
      finish.resolve();
      await wait(1_500);
      isDown = false;
      await until(async () => (await queue.jobs({ ids, status: "completed" })).jobs.length === 3);
    });
    expect(runs).toBe(3);
    for (const id of ids) expect(await outcomes(id)).toEqual(["completed"]);
    await rotating.close();
    await pool.end();
  });

  test("one that cannot be settled before its lease ends is given up and recovered", async () => {
    const Task = defineTask({ kind: "given_up", payload, lease: "1s" });
    const id = await queue.enqueue(Task({ n: 1 }));
    const { logger, records } = recordingLogger();
    let isDown = true;
    const { wrapped } = failing(store, async () => {
      if (isDown) throw reset();
    });
    const worker = new Worker(wrapped, { logger }).register(Task, () => undefined);
    await running(worker, async () => {
      await until(() => records.some(({ message }) => message.includes("could not be settled")));
      isDown = false;
      await until(() => isCompleted(id));
    });
    expect(await outcomes(id)).toEqual(["stale-recovered", "completed"]);
  });
});

describe("a database that is gone during the shutdown", () => {
  test.each(["refuse", "swallow"] as const)(
    "(%s) does not keep run from ending, which names the jobs it holds",
    async (mode) => {
      const { proxy, through, close } = await behindProxy();
      const Task = defineTask({ kind: `gone ${mode}`, payload });
      const ids = await queue.enqueueMany([Task({ n: 1 }), Task({ n: 2 })]);
      const { logger, records } = recordingLogger();
      let started = 0;
      const worker = new Worker(through, {
        concurrency: 2,
        shutdownTimeout: 500,
        workerTimeout: 300,
        logger,
      }).register(Task, () => {
        started += 1;
        return deferred().promise;
      });
      let at = 0;
      const [report] = await running(worker, async () => {
        await until(() => started === 2);
        proxy.mode = mode;
        at = performance.now();
      });
      expect(performance.now() - at).toBeLessThan(5_500);
      expect([...(report?.unreleased ?? [])].sort()).toEqual([...ids].sort());
      expect(records.some(({ message }) => message.includes("without releasing all jobs"))).toBe(
        true,
      );
      // Others find them by the silence of their worker.
      const rescuer = new Worker(store, { workerTimeout: 300 }).register(Task, () => undefined);
      await running(rescuer, () =>
        until(async () => (await queue.jobs({ ids, status: "completed" })).jobs.length === 2),
      );
      proxy.mode = "refuse";
      await close();
    },
  );
});

describe("run rejects at once", () => {
  const Task = defineTask({ kind: "rejected", payload });

  test("where the tables are missing, saying that migrate must run", async () => {
    const elsewhere = new PostgresStore({ pool: database.pool, prefix: "nowhere" });
    const error = await new Worker(elsewhere)
      .register(Task, () => undefined)
      .run()
      .catch((error: unknown) => error);
    expect(codeOf(error)).toBe("not-migrated");
    expect(String(error)).toMatch(/migrate/);
  });

  test("where the database does not exist", async () => {
    const url = new URL(database.url);
    url.pathname = "/does_not_exist";
    const pool = new pg.Pool({ connectionString: url.href });
    const error = await new Worker(new PostgresStore({ pool }))
      .register(Task, () => undefined)
      .run()
      .catch((error: unknown) => error);
    expect(error).toMatchObject({ code: "database", sqlState: "3D000" });
    await pool.end();
  });

  test("with a store that is none, or is of another version", () => {
    expect(() => new Worker({} as WorkerStore)).toThrow(/is not a store/);
    const newer = { ...wrapStore(store, () => ({})), portVersion: 99 } as unknown as WorkerStore;
    expect(() => new Worker(newer)).toThrow(/port version 99/);
  });
});
