import type { ClaimedJob, JobId } from "@venturi/core";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import fc from "fast-check";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { addBacklog, removeJobs } from "../testing/backlog.ts";
import { bareEnqueue } from "../testing/bare-sql.ts";
import { Gate } from "../testing/gate.ts";
import { whileLocked } from "../testing/locks.ts";
import { recordingPool, verbOf } from "../testing/recording-pool.ts";
import { claimRequest, enqueue, job, settlement, startWorker } from "../testing/store-fixture.ts";
import { isUntouched, unended } from "./claim-terms.ts";

const database = await testDatabase();
const { pool, directUrl } = database;
const recorder = recordingPool(pool);
const store = new PostgresStore({ pool: recorder });

afterEach(async () => {
  await expectInvariants(pool);
  await removeJobs(pool);
});

describe("of the number of the last transaction that touched a row", () => {
  const sessions: pg.Client[] = [];
  const inTransaction = async () => {
    const client = new pg.Client({ connectionString: directUrl });
    sessions.push(client);
    await client.connect();
    await client.query("begin");
    const { rows } = await client.query("select pg_current_xact_id()::text::int8::float8 as xid");
    return { client, xid: rows[0].xid as number };
  };
  const endOf = async (how: "commit" | "rollback") => {
    const { client, xid } = await inTransaction();
    await client.query(how);
    return xid;
  };
  /** What it says about rows with these numbers; where they are relative, after the last that its statement knows of. */
  const said = async (numbers: readonly number[], { areRelative = false } = {}) => {
    const { rows } = await pool.query(
      `select array_agg(${isUntouched("r", "s")} order by r.place) as untouched, max(s.next)::float8 as next
      from (select ${unended}, pg_snapshot_xmax(pg_current_snapshot())::text::int8 as next) s cross join lateral (
        select ((u.x + $2::int8 * s.next) % 4294967296)::text::xid as xmax, '2'::xid as xmin, u.place
        from unnest($1::int8[]) with ordinality u(x, place)) r`,
      [numbers, areRelative ? 1 : 0],
    );
    return rows[0] as { untouched: boolean[]; next: number };
  };

  afterEach(() => Promise.all(sessions.splice(0).map((client) => client.end())));

  it("one that goes on touches it, also beside an older one that goes on", async () => {
    const older = await inTransaction();
    const ended = [await endOf("commit"), await endOf("rollback")];
    const younger = await inTransaction();
    const { untouched } = await said([older.xid, ...ended, younger.xid]);
    expect(untouched).toEqual([false, true, true, false]);
  });

  it("one that began after the statement touches it; what would be far ahead is long ago", async () => {
    const { untouched } = await said([0, 1, 10_000, 10_001, 2 ** 31], { areRelative: true });
    expect(untouched).toEqual([false, false, false, true, true]);
  });

  it("none touches it, nor one whose own row it is", async () => {
    expect((await said([0, 2])).untouched).toEqual([true, true]);
  });

  it("whatever the number is, there is an answer, and nearly all have ended", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 2 ** 32 - 1 }), { minLength: 50 }),
        async (numbers) => {
          const { untouched, next } = await said(numbers);
          // They begin anew after 2^32.
          const mayGoOn = (number: number) =>
            (((number - next + 10_000) % 2 ** 32) + 2 ** 32) % 2 ** 32 <= 20_000;
          for (const [index, number] of numbers.entries())
            if (number === 0 || !mayGoOn(number)) expect(untouched[index]).toBe(true);
        },
      ),
    );
  });
});

describe("a claim", () => {
  let gate: Gate;

  beforeAll(async () => {
    gate = await Gate.build(database);
  });
  afterAll(() => gate.end());

  it("passes over what another one has taken since it began, and locks none of it but the first", async () => {
    const [fast, slow] = [await startWorker(store), await startWorker(gate.store)];
    await addBacklog(pool, { kind: "k", count: 40 });
    let taken: readonly ClaimedJob[] = [];
    const { jobs } = await gate.hold(
      () => gate.store.claim(claimRequest(slow, ["k"], { limit: 10 })),
      async () => {
        taken = (await store.claim(claimRequest(fast, ["k"], { limit: 20 }))).jobs;
      },
    );
    expect([taken.length, jobs.length]).toEqual([20, 10]);
    const { rows } = await pool.query(
      "select row_number() over (order by seq)::int4 as place, claimed_by as by from venturi_queue where xmax <> xmin and xmax <> '0' order by seq",
    );
    expect(rows).toEqual([{ place: 1, by: fast }]);
    const settlements = taken.slice(1).map((claimed) => settlement(claimed));
    const sent = await recorder.queriesOf(() => store.settle({ worker: fast, settlements }));
    expect(sent.map(verbOf)).toEqual(["settle_completed"]);
  });

  it.each(["keep", "replace"])(
    "tries what a producer has merged into since it began (%s), also behind others",
    async (merge) => {
      const worker = await startWorker(gate.store);
      const keyed = (payload: string) => ({ kind: "k", dedup_key: "1", payload, merge });
      const enqueued = await bareEnqueue(pool, [
        { kind: "k", payload: "first" },
        keyed("old"),
        { kind: "k", payload: "last" },
      ]);
      const { jobs, blocked } = await gate.hold(
        () => gate.store.claim(claimRequest(worker, ["k"])),
        async () => {
          await bareEnqueue(pool, [keyed("new")]);
        },
      );
      expect(jobs.map(({ id }) => id)).toEqual(enqueued.map(({ id }) => id));
      expect(jobs[1]?.payload).toBe(merge === "keep" ? '"old"' : '"new"');
      expect(blocked).toBe(false);
    },
  );

  it("tries the first of a kind also where another kind has left its turn to it", async () => {
    const worker = await startWorker(gate.store);
    const [locked, other] = await enqueue(store, job("a"), job("b"));
    const { jobs } = await whileLocked(pool, [locked as JobId], () =>
      gate.hold(
        () => gate.store.claim(claimRequest(worker, ["a", "b"], { limit: 1 })),
        () => whileLocked(pool, [other as JobId], () => Promise.resolve()),
      ),
    );
    expect(jobs.map(({ id }) => id)).toEqual([other]);
  });

  it("brings what nobody has locked any more, however that ended, while an old transaction goes on", async () => {
    const old = await pool.connect();
    await old.query("begin");
    await old.query("select pg_current_xact_id()");
    try {
      const ids = await enqueue(store, ...Array.from({ length: 8 }, () => job("k")));
      const lock = (place: number, mode = "for update") =>
        `select 1 from venturi_queue where venturi_ulid(job_id) = '${ids[place]}' ${mode}`;
      const scripts = [
        ["begin", lock(1), "commit"],
        ["begin", lock(2), "rollback"],
        ["begin", "savepoint s", lock(3), "rollback to s", "commit"],
        ["begin", "savepoint s", lock(4), "release s", "commit"],
        ["begin", lock(5, "for key share"), lock(5, "for no key update"), "commit"],
        ["begin", `delete from venturi_queue where venturi_ulid(job_id) = '${ids[6]}'`, "rollback"],
      ];
      const client = await pool.connect();
      for (const script of scripts) for (const sql of script) await client.query(sql);
      const sharers = [client, await pool.connect()];
      for (const sharer of sharers) {
        await sharer.query("begin");
        await sharer.query(lock(7, "for share"));
      }
      for (const sharer of sharers) {
        await sharer.query("commit");
        sharer.release();
      }
      const { jobs, blocked } = await store.claim(
        claimRequest(await startWorker(store), ["k"], { limit: 10 }),
      );
      expect(jobs.map(({ id }) => id)).toEqual(ids);
      expect(blocked).toBe(false);
    } finally {
      await old.query("rollback");
      old.release();
    }
  });

  it.each(["for update", "for share", "in a savepoint"])(
    "tells of what somebody has locked (%s), and brings it when that has ended",
    async (mode) => {
      const worker = await startWorker(store);
      const ids = await enqueue(store, job("k"), job("k"), job("k"));
      const locker = await pool.connect();
      await locker.query("begin");
      if (mode === "in a savepoint") await locker.query("savepoint s");
      const row = `select 1 from venturi_queue where venturi_ulid(job_id) = '${ids[1]}'`;
      await locker.query(`${row} ${mode === "for share" ? mode : "for update"}`);
      const claim = () => store.claim(claimRequest(worker, ["k"], { limit: 10 }));
      const before = await claim();
      expect(before.jobs.map(({ id }) => id)).toEqual([ids[0], ids[2]]);
      expect(before.blocked).toBe(true);
      await locker.query("rollback");
      locker.release();
      const after = await claim();
      expect(after.jobs.map(({ id }) => id)).toEqual([ids[1]]);
      expect(after.blocked).toBe(false);
    },
  );
});
