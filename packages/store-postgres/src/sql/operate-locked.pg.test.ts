import type { JobId, WorkerId } from "@venturi/core";
import { expectInvariants, inTransaction, testDatabase } from "@venturi-tooling/testing";
import type pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "../postgres-store.ts";
import { removeJobs } from "../testing/backlog.ts";
import { recordingPool } from "../testing/recording-pool.ts";
import {
  claimNew,
  claimRequest,
  enqueue,
  job,
  settlement,
  startWorker,
} from "../testing/store-fixture.ts";

const { pool } = await testDatabase();
const store = new PostgresStore({ pool });
let worker: WorkerId;

beforeEach(async () => {
  await removeJobs(pool);
  worker = await startWorker(store);
});
afterEach(() => expectInvariants(pool));

/** A store whose statements belong to somebody's transaction. */
const within = (client: pg.PoolClient) => new PostgresStore({ pool: recordingPool(client) });
const outcomesOf = async (jobId: JobId) =>
  (await store.readJournal({ jobId })).entries.map(({ outcome }) => outcome);

class RolledBack extends Error {}

/** What others see of work in a transaction that is still open, which then commits or is rolled back. */
async function beside(
  end: "commits" | "rolls back",
  work: (within: PostgresStore) => Promise<unknown>,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const whole = inTransaction(pool, async (client) => {
    await work(within(client));
    await meanwhile();
    if (end === "rolls back") throw new RolledBack();
  });
  await (end === "commits" ? whole : expect(whole).rejects.toBeInstanceOf(RolledBack));
}

async function dead(): Promise<JobId> {
  const [run] = await claimNew(store, worker, "a", 1);
  await store.settle({ worker, settlements: [settlement(run, "dead")] });
  return run.id;
}

describe("a cancellation beside an open claim of the job", () => {
  it.each(["commits", "rolls back"] as const)(
    "is refused at once, whether the claim %s",
    async (end) => {
      const [id = ""] = await enqueue(store, job("a"));
      const claim = (own: PostgresStore) => own.claim(claimRequest(worker, ["a"]));
      await beside(end, claim, async () => {
        expect(await store.cancel({ id })).toEqual({ applied: false });
      });
      const isFree = end === "rolls back";
      expect((await store.findJob({ id })).job?.status).toBe(isFree ? "pending" : "claimed");
      expect(await store.cancel({ id })).toEqual({ applied: isFree });
    },
  );
});

describe("putting a dead job back", () => {
  it.each(["commits", "rolls back"] as const)(
    "beside another call of it that %s is refused at once, and applies once in all",
    async (end) => {
      const id = await dead();
      await beside(
        end,
        (own) => own.retry({ id }),
        async () => expect(await store.retry({ id })).toEqual({ applied: false }),
      );
      expect(await store.retry({ id })).toEqual({ applied: end === "rolls back" });
      expect(await outcomesOf(id)).toEqual(["dead", "requeued"]);
      expect((await store.findJob({ id })).job).toMatchObject({ status: "pending" });
    },
  );
});

describe("a cleanup", () => {
  const cleanup = (of: PostgresStore) =>
    of.cleanup({
      finishedBefore: new Date(Date.now() + 60_000),
      kind: null,
      statuses: ["completed", "dead", "cancelled"],
    });

  it.each(["commits", "rolls back"] as const)(
    "beside another that %s passes over what that one deletes, and counts none of it",
    async (end) => {
      await dead();
      const late: JobId[] = [];
      await beside(end, cleanup, async () => {
        late.push(await dead());
        expect(await cleanup(store)).toEqual({ deleted: 1 });
      });
      expect(await cleanup(store)).toEqual({ deleted: end === "commits" ? 0 : 1 });
      for (const id of late) expect(await store.findJob({ id })).toEqual({ job: null });
    },
  );

  it("leaves alone a dead job that is put back meanwhile", async () => {
    const id = await dead();
    let cleaning = Promise.resolve({ deleted: Number.NaN });
    await beside(
      "commits",
      (own) => own.retry({ id }),
      async () => {
        cleaning = cleanup(store);
        await waitsForLock();
      },
    );
    expect(await cleaning).toEqual({ deleted: 0 });
    expect(await outcomesOf(id)).toEqual(["dead", "requeued"]);
    expect((await store.findJob({ id })).job).toMatchObject({ status: "pending" });
  });
});

/** Somebody waits for a row that is locked. */
async function waitsForLock(): Promise<void> {
  await expect
    .poll(async () => {
      const { rows } = await pool.query(
        "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return rows.length;
    })
    .toBe(1);
}
