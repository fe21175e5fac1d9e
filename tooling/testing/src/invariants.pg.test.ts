import { beforeEach, expect, test } from "vitest";
import { testDatabase } from "./test-database.ts";
import { invariantViolations } from "./violations.ts";

const database = await testDatabase();
const ID = "01JDPW0000000000000000000A";
const UUID = "01936dc0-0000-0000-0000-00000000000a";

const claimed = "claimed_by = 7, claimed_at = now(), lease_expires_at = now() + interval '1 h'";

beforeEach(async () => {
  await run("truncate venturi_jobs, venturi_queue, venturi_dead, venturi_journal");
});

test("an empty queue violates nothing", async () => {
  expect(await violations()).toEqual([]);
});

test("a job that failed, was claimed again and completed violates nothing", async () => {
  await pendingJob();
  await run(`update venturi_queue set run_count = 1, ${claimed}`);
  expect(await violations()).toEqual([]);
  await run(`update venturi_queue set failure_count = 1, claimed_by = null, claimed_at = null,
    lease_expires_at = null`);
  await entry({ outcome: "r", run: 1, failures: 1 });
  expect(await violations()).toEqual([]);
  await run("delete from venturi_queue");
  await entry({ outcome: "c", run: 2, failures: 1 });
  expect(await violations()).toEqual([]);
});

test.each([
  ["failureCount", async () => run("update venturi_queue set failure_count = 1")],
  ["every run has one entry", async () => run("update venturi_queue set run_count = 1")],
  [
    "runs are numbered",
    async () => {
      await run("update venturi_queue set run_count = 1");
      await entry({ outcome: "p", run: 2, failures: 0 });
    },
  ],
  ["a job has ended exactly when", async () => run("delete from venturi_queue")],
  [
    "a job has ended exactly when",
    async () => {
      await run("update venturi_queue set run_count = 1");
      await entry({ outcome: "c", run: 1, failures: 0 });
    },
  ],
  [
    "a dead job",
    async () => {
      await run("delete from venturi_queue");
      await entry({ outcome: "d", run: 1, failures: 1 });
    },
  ],
  [
    "a dead job, and no other",
    async () => {
      await run("delete from venturi_queue");
      await run(`insert into venturi_dead
        (job_id, seq, visible_at, finished_at, kind_id, run_count, failure_count, version, priority)
        select id, 0, now(), now(), kind_id, 1, 0, 0, 1 from venturi_jobs`);
      await entry({ outcome: "c", run: 1, failures: 0 });
    },
  ],
  ["a claimed job", async () => run("update venturi_queue set claimed_at = now()")],
  ["its body is there", async () => run("delete from venturi_jobs")],
  [
    "completed twice",
    async () => {
      await run("delete from venturi_queue");
      for (const number of [1, 2]) await entry({ outcome: "c", run: number, failures: 0 });
    },
  ],
  [
    "overlap",
    async () => {
      await run("update venturi_queue set run_count = 2");
      await entry({ outcome: "p", run: 1, failures: 0 });
      await entry({ outcome: "p", run: 2, failures: 0 });
      await run("update venturi_journal set recorded_at = now() + interval '1 h' where run_no = 1");
    },
  ],
])("a contradiction of “%s” is found", async (statement, contradict) => {
  await pendingJob();
  await contradict();
  const found = await violations();
  expect(found.join("\n")).toContain(statement);
  expect(found.join("\n")).toContain(ID);
});

test("a lost and an invented id are found", async () => {
  await pendingJob();
  const other = "01JDPW0000000000000000000B";
  expect(await violations({ enqueued: [ID] })).toEqual([]);
  expect(await violations({ enqueued: [ID, other] })).toEqual([
    `${other} was enqueued and is lost`,
  ]);
  expect(await violations({ enqueued: [] })).toEqual([`${ID} was never enqueued`]);
});

test("a connection too many is found", async () => {
  const other = await database.pool.connect();
  const mine = await database.pool.connect();
  expect(await invariantViolations(mine, { maxConnections: 0 })).toHaveLength(1);
  expect(await invariantViolations(mine, { maxConnections: 1 })).toEqual([]);
  for (const client of [other, mine]) client.release();
});

test("a session-level advisory lock that was left is found", async () => {
  const other = await database.pool.connect();
  await other.query("select pg_advisory_lock(1, 2)");
  expect(await violations()).toHaveLength(1);
  other.release(true);
});

test("an index that is not valid is found", async () => {
  await run("create index half_made on venturi_jobs (created_at)");
  await run("update pg_index set indisvalid = false where indexrelid = 'half_made'::regclass");
  expect(await violations()).toEqual(["every index is valid: half_made is not"]);
  await run("drop index half_made");
  expect(await violations()).toEqual([]);
});

test("a connection that has been idle in a transaction for over a second is found, one that was busy in it is not", async () => {
  const other = await database.pool.connect();
  await other.query("begin");
  expect(await violations()).toEqual([]);
  await other.query("select pg_sleep(1.2)");
  expect(await violations()).toEqual([]);
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  expect(await violations()).toEqual([
    expect.stringMatching(/^connection \d+ has been idle in transaction for \d/),
  ]);
  await other.query("rollback");
  other.release();
  expect(await violations()).toEqual([]);
});

function violations(options: { enqueued?: string[] } = {}): Promise<string[]> {
  return invariantViolations(database.pool, options);
}

async function run(text: string): Promise<void> {
  await database.pool.query(text);
}

async function pendingJob(): Promise<void> {
  await run(`insert into venturi_jobs (id, created_at, kind_id, priority, payload)
    values ('${UUID}', now(), 1, 1, '{}')`);
  await run(`insert into venturi_queue (job_id, visible_at, kind_id, priority)
    values ('${UUID}', now(), 1, 1)`);
}

interface Entry {
  readonly outcome: string;
  readonly run: number;
  readonly failures: number;
}

async function entry({ outcome, run: number, failures }: Entry): Promise<void> {
  await run(`insert into venturi_journal
    (recorded_at, started_at, job_id, kind_id, run_no, failure_count, outcome)
    values (now(), now(), '${UUID}', 1, ${number}, ${failures}, '${outcome}')`);
}
