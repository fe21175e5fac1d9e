import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { isVenturiError, type LogFields, silentLogger, type VenturiError } from "@venturi/core";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { TcpProxy } from "@venturi-tooling/testing/tcp-proxy";
import pg from "pg";
import { afterEach, describe, expect, it } from "vitest";
import { Queue } from "./queue.ts";
import { Count } from "./testing/tasks.ts";

const database = await testDatabase();
const operator = new Queue(new PostgresStore({ pool: database.pool }));

afterEach(() => expectInvariants(database.pool));

async function failureOf(promise: Promise<unknown>): Promise<VenturiError> {
  const error: unknown = await promise.then(
    () => new Error("did not fail"),
    (thrown: unknown) => thrown,
  );
  if (!isVenturiError(error)) throw error;
  return error;
}

/** Waits until a statement of the pool's named application waits for a lock; returns its process id. */
async function blockedBackend(application: string): Promise<number> {
  for (;;) {
    const { rows } = await database.pool.query(
      "select pid from pg_stat_activity where datname = current_database() and application_name = $1 and wait_event_type = 'Lock'",
      [application],
    );
    if (rows.length > 0) return rows[0].pid;
  }
}

async function terminate(application: string): Promise<void> {
  await database.pool.query(
    "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and application_name = $1",
    [application],
  );
}

describe("a connection lost on the way", () => {
  it("is enqueue-unknown, and repeating the call with its id leaves one job", async () => {
    const proxy = await TcpProxy.before(database.url);
    const pool = new pg.Pool({ connectionString: proxy.url });
    const queue = new Queue(pool);
    await queue.enqueue(Count({ n: 0 }));
    proxy.mode = "lose-replies";
    const error = await failureOf(queue.enqueue(Count({ n: 42 })));
    expect(error).toMatchObject({ code: "enqueue-unknown", isRetryable: true });
    proxy.mode = "pass";
    const id = await queue.enqueue(Count({ n: 42 }), error.id ? { id: error.id } : {});
    expect(id).toBe(error.id);
    const { rows } = await database.pool.query(
      `select count(*)::int as count from venturi_jobs where payload = '{"n": 42}'`,
    );
    expect(rows).toEqual([{ count: 1 }]);
    await pool.end();
    await proxy.close();
  });

  it("of a call with many jobs carries all their ids, in order", async () => {
    const proxy = await TcpProxy.before(database.url);
    const pool = new pg.Pool({ connectionString: proxy.url });
    const queue = new Queue(pool);
    await queue.enqueue(Count({ n: 0 }));
    proxy.mode = "lose-replies";
    const jobs = [1, 2, 3].map((n) => Count({ n }));
    const error = await failureOf(queue.enqueueMany(jobs));
    proxy.mode = "pass";
    expect(error).toMatchObject({ code: "enqueue-unknown", isRetryable: true });
    const items = jobs.map((job, index) => ({ job, id: error.ids?.[index] }));
    expect(await queue.enqueueMany(items)).toEqual(error.ids);
    for (const id of error.ids ?? []) expect(await operator.journal(id)).toEqual([]);
    await pool.end();
    await proxy.close();
  });

  it("gives each of the callers that shared the statement its own id", async () => {
    const application_name = "shared-statement";
    const pool = new pg.Pool({ connectionString: database.url, application_name });
    const queue = new Queue(pool);
    const blocker = await database.pool.connect();
    await blocker.query("begin; lock table venturi_jobs in exclusive mode");
    const calls = [1, 2, 3].map((n) => failureOf(queue.enqueue(Count({ n }))));
    const pid = await blockedBackend(application_name);
    await database.pool.query("select pg_terminate_backend($1)", [pid]);
    const errors = await Promise.all(calls);
    await blocker.query("commit");
    blocker.release();
    expect(errors.map(({ code }) => code)).toEqual(Array(3).fill("enqueue-unknown"));
    expect(new Set(errors.map(({ id }) => id)).size).toBe(3);
    for (const { id } of errors) expect(await operator.job(id as string)).toBeNull();
    await pool.end();
  });
});

describe("when nothing was sent, the error is database and retryable", () => {
  it("with nobody listening", async () => {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    server.close();
    const connectionString = `postgres://ann:s3cret@127.0.0.1:${port}/jobs`;
    const pool = new pg.Pool({ connectionString });
    const error = await failureOf(new Queue(pool).enqueue(Count({ n: 1 })));
    expect(error).toMatchObject({ code: "database", isRetryable: true });
    expect(error.message).toContain("ECONNREFUSED");
    expect(JSON.stringify(error) + error.message).not.toContain("s3cret");
    await pool.end();
  });

  it("with no connection free in time", async () => {
    const pool = new pg.Pool({
      connectionString: database.url,
      max: 1,
      connectionTimeoutMillis: 100,
    });
    const holder = await pool.connect();
    const error = await failureOf(new Queue(pool).enqueue(Count({ n: 1 })));
    expect(error).toMatchObject({ code: "database", isRetryable: true });
    holder.release();
    await pool.end();
  });
});

it("a statement cancelled by its timeout is database, retryable, and wrote nothing", async () => {
  const pool = new pg.Pool({ connectionString: database.url, statement_timeout: 100 });
  const blocker = await database.pool.connect();
  await blocker.query("begin; lock table venturi_jobs in exclusive mode");
  const id = "01ARZ3NDEKTSV4RRFFQ69G5FC1";
  const error = await failureOf(new Queue(pool).enqueue(Count({ n: 1 }), { id }));
  await blocker.query("commit");
  blocker.release();
  expect(error).toMatchObject({ code: "database", sqlState: "57014", isRetryable: true });
  expect(await operator.job(id)).toBeNull();
  await pool.end();
});

it("a pool that has been ended is database, not retryable", async () => {
  const pool = new pg.Pool({ connectionString: database.url });
  await pool.end();
  const error = await failureOf(new Queue(pool).enqueue(Count({ n: 1 })));
  expect(error).toMatchObject({ code: "database", isRetryable: false });
});

describe("idle connections that die", () => {
  it("are logged without secrets and replaced, with one listener however many queues", async () => {
    const application_name = "idle-pool";
    const pool = new pg.Pool({ connectionString: database.url, application_name });
    const warned: LogFields[] = [];
    const logger = {
      ...silentLogger,
      warn: (message: string, fields?: LogFields) => warned.push({ message, ...fields }),
    };
    const queues = [1, 2, 3].map(() => new Queue(pool, { logger }));
    expect(pool.listenerCount("error")).toBe(1);
    await queues[0]?.enqueue(Count({ n: 1 }));
    const died = new Promise((resolve) => pool.once("remove", resolve));
    await terminate(application_name);
    await died;
    await queues[1]?.enqueue(Count({ n: 2 }));
    expect(warned).toHaveLength(1);
    expect(JSON.stringify(warned).length).toBeLessThan(500);
    expect(JSON.stringify(warned)).not.toContain(new URL(database.url).password || "connectionP");
    await pool.end();
  });

  it("do not end a process that only produces", async () => {
    const application_name = "idle-producer";
    const child = spawn(
      process.execPath,
      [
        "--conditions=@venturi/source",
        "--import",
        "tsx",
        fileURLToPath(new URL("./testing/idle-producer.ts", import.meta.url)),
        database.url,
        application_name,
      ],
      { stdio: ["pipe", "pipe", "inherit"] },
    );
    const exited = once(child, "exit");
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const next = async () => String((await lines.next()).value);
    expect(await next()).toBe("ready");
    await terminate(application_name);
    expect(await next()).toBe("lost");
    child.stdin.write("enqueue\n");
    expect(await operator.job(await next())).toMatchObject({ status: "pending" });
    child.stdin.end();
    expect(await exited).toEqual([0, null]);
  });
});

describe("a client that dies in its owner's transaction, of a pool that nobody else uses,", () => {
  const lean = new Queue(new pg.Client({ connectionString: database.url }));

  it.each([
    { through: "a lean queue", queues: [lean, lean] },
    { through: "a store", queues: [operator, operator] },
    { through: "both", queues: [lean, operator] },
  ])(
    "does not end the process after $through used it, and has one listener",
    async ({ queues }) => {
      const application_name = "owners-client";
      const pool = new pg.Pool({ connectionString: database.url, application_name });
      const client = await pool.connect();
      await client.query("begin");
      for (const queue of queues) await queue.within(client).enqueue(Count({ n: 1 }));
      expect(client.listenerCount("error")).toBe(1);
      // Not `once` of node:events, which would listen to errors itself.
      const ended = new Promise((resolve) => client.once("end", resolve));
      await terminate(application_name);
      await ended;
      await failureOf(lean.within(client).enqueue(Count({ n: 2 })));
      client.release(true);
      await pool.end();
    },
  );
});
