import { expectInvariants, openSession, testDatabase } from "@venturi-tooling/testing";
import type pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { bareEnqueue, bareId, liveJobs } from "../testing/bare-sql.ts";
import { failureOf } from "../testing/failure-of.ts";
import { job, newId } from "../testing/store-fixture.ts";
import { until } from "../testing/until.ts";

const { pool } = await testDatabase();

let counter = 0;
let kind: string;
/** Holds the transaction that others wait for. */
let holder: pg.PoolClient;
/** Enqueues meanwhile. */
let other: pg.Client;

beforeEach(async () => {
  counter += 1;
  kind = `kind ${counter}`;
  [holder, other] = [await pool.connect(), await openSession(pool)];
  await holder.query("begin");
});

afterEach(async () => {
  await holder.query("rollback");
  holder.release();
  await other.end();
  await expectInvariants(pool);
});

const show = async (client: pg.Client) =>
  (await client.query<{ lock_timeout: string }>("show lock_timeout")).rows[0]?.lock_timeout;

describe("the first job of a kind, in a transaction that stays open,", () => {
  it.each([
    ["one", () => ({ kind })],
    ["one with options", () => ({ kind, priority: "high" })],
    ["a keyed one", () => ({ kind, dedup_key: "key" })],
  ])("makes another of the kind fail after the session's lock_timeout: %s", async (_, another) => {
    await bareEnqueue(holder, [{ kind }]);
    await other.query("set lock_timeout = '100ms'");
    await expect(bareEnqueue(other, [another()])).rejects.toMatchObject({
      code: "55P03",
      message: `another transaction has enqueued the first job of a kind (${kind}), and is still open`,
      hint: expect.stringContaining("never wait inside of it"),
    });
    expect(await show(other)).toBe("100ms");
  });

  it("makes nobody else wait", async () => {
    await bareEnqueue(pool, [{ kind: "known" }]);
    await bareEnqueue(holder, [{ kind }]);
    await other.query("set lock_timeout = '100ms'");
    expect(await bareEnqueue(other, [{ kind: "known" }, { kind: `${kind} too` }])).toHaveLength(2);
  });

  it.each(["commit", "rollback"])("lets the others pass with its %s", async (end) => {
    await bareEnqueue(holder, [{ kind, payload: 1 }]);
    const [{ pid }] = (await other.query("select pg_backend_pid() as pid")).rows;
    const waiting = bareEnqueue(other, [{ kind, payload: 2 }]);
    const state = "select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'";
    await until(async () => (await pool.query(state, [pid])).rows.length === 1);
    await holder.query(end);
    expect(await waiting).toMatchObject([{ outcome: "enqueued" }]);
    const stored = await liveJobs(pool, `k.name = '${kind}'`);
    expect(stored.map(({ payload }) => payload)).toEqual(end === "commit" ? [1, 2] : [2]);
  });
});

describe("an id whose first call is in a transaction that stays open", () => {
  // A null key is none, but keeps the call from the ways that set no limit.
  it.each([
    ["without a key", { dedup_key: null }],
    ["with a key", { dedup_key: "of its own" }],
  ])("makes a repeat fail after the session's lock_timeout: %s", async (_, key) => {
    await bareEnqueue(pool, [{ kind }]);
    const id = bareId();
    await bareEnqueue(holder, [{ kind, ...id }]);
    await other.query("set lock_timeout = '100ms'");
    await expect(bareEnqueue(other, [{ kind, ...id, ...key }])).rejects.toMatchObject({
      code: "55P03",
    });
  });

  it("is named by the store's error", async () => {
    const store = new PostgresStore({ pool });
    const again = job(kind, { id: newId(), repeatable: true });
    await store.enqueue({ jobs: [job(kind)] });
    await store.within(holder).enqueue({ jobs: [again] });
    await other.query("set lock_timeout = '100ms'");
    expect(await failureOf(store.within(other).enqueue({ jobs: [again] }))).toMatchObject({
      code: "database",
      sqlState: "55P03",
      isRetryable: true,
      message: expect.stringContaining("the same id may be in a transaction that is still open"),
    });
  });
});

describe("the longest wait", () => {
  /** What `lock_timeout` is where rows are inserted into these tables. */
  async function limitsSeen(client: pg.Client, jobs: unknown) {
    await client.query("begin");
    await client.query(`create temp table limits (place text, lock_timeout text) on commit drop;
      grant all on limits to public;
      create function pg_temp.note() returns trigger language plpgsql as $$ begin
        insert into pg_temp.limits values (tg_table_name, current_setting('lock_timeout'));
        return new;
      end $$;
      create trigger note before insert on venturi_kinds for each row execute function pg_temp.note();
      create trigger note before insert on venturi_jobs for each row execute function pg_temp.note()`);
    await bareEnqueue(client, jobs);
    const { rows } = await client.query("select * from limits order by place");
    const left = await show(client);
    await client.query("rollback");
    return { seen: rows.map(({ place, lock_timeout }) => [place, lock_timeout]), left };
  }

  it("is 30 seconds where the session sets no limit, which stays as it was", async () => {
    const seen = [
      ["venturi_jobs", "30s"],
      ["venturi_kinds", "30s"],
    ];
    expect(await limitsSeen(other, [{ kind, ...bareId() }])).toEqual({ seen, left: "0" });
    expect(await show(other)).toBe("0");
  });

  it.each(["100ms", "5min"])("is the session's own: %s", async (own) => {
    await other.query(`set lock_timeout = '${own}'`);
    const seen = [
      ["venturi_jobs", own],
      ["venturi_kinds", own],
    ];
    expect(await limitsSeen(other, [{ kind }])).toEqual({ seen, left: own });
  });

  it("is not left behind by a call that fails within a transaction that goes on", async () => {
    await bareEnqueue(pool, [{ kind, ...bareId() }]);
    const id = bareId();
    await bareEnqueue(pool, [{ kind, ...id }]);
    await other.query("begin; savepoint before");
    await expect(bareEnqueue(other, [{ kind: "known", ...id }])).rejects.toMatchObject({
      code: "VT001",
    });
    await other.query("rollback to savepoint before");
    expect(await show(other)).toBe("0");
    await other.query("rollback");
  });

  it("costs calls of known kinds nothing: neither of their ways sets a limit", async () => {
    await bareEnqueue(pool, [{ kind }]);
    for (const jobs of [[{ kind, ...bareId() }], [{ kind }, { kind, priority: "low" }]]) {
      const { seen } = await limitsSeen(other, jobs);
      expect(new Set(seen.map(([, limit]) => limit))).toEqual(new Set(["0"]));
    }
  });
});
