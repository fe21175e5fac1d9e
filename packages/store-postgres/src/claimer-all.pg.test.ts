import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Claimer } from "./claimer.ts";
import { PostgresStore } from "./postgres-store.ts";
import { addBacklog, removeJobs } from "./testing/backlog.ts";
import { claimerOn } from "./testing/claimer-on.ts";
import { recordingPool, verbOf } from "./testing/recording-pool.ts";
import { claimKind, claimRequest, enqueue, job } from "./testing/store-fixture.ts";

const { pool } = await testDatabase();
const recorder = recordingPool(pool);
const store = new PostgresStore({ pool });
const worker = 4711;

let now: number;
let claimer: Claimer;

beforeEach(async () => {
  await removeJobs(pool);
  now = 0;
  claimer = claimerOn(recorder, () => now);
});

afterEach(() => expectInvariants(pool));

const claim = (limit: number) => claimer.claim(claimRequest(worker, ["a"], { limit }));

describe("while claims take everything that waits", () => {
  const statements = async (work: () => Promise<unknown>) =>
    (await recorder.queriesOf(work)).map(verbOf).filter((verb) => !verb.startsWith("kinds"));
  const statementsOf = (limit: number) => statements(() => claim(limit));

  beforeEach(async () => {
    await claim(5);
  });

  it("the smaller statement alone is sent, also where there is just as much as may be taken", async () => {
    for (const count of [0, 1, 0, 4, 5]) {
      await addBacklog(pool, { kind: "a", count });
      expect(await statementsOf(5)).toEqual(["claim_all"]);
    }
  });

  it("after one that took just as much as it might the larger one begins where that ended", async () => {
    await addBacklog(pool, { kind: "a", count: 5 });
    expect(await statementsOf(5)).toEqual(["claim_all"]);
    await addBacklog(pool, { kind: "a", count: 5 });
    expect(await statementsOf(5)).toEqual(["claim"]);
    // Short behind its marks: the rest is looked for from the start, and from then on there are none.
    await addBacklog(pool, { kind: "a", count: 3 });
    expect(await statementsOf(5)).toEqual(["claim", "claim"]);
    await addBacklog(pool, { kind: "a", count: 5 });
    expect(await statementsOf(5)).toEqual(["claim_all"]);
    now += 1_000;
    await addBacklog(pool, { kind: "a", count: 5 });
    expect(await statementsOf(5)).toEqual(["claim"]);
  });

  it("after one that took hundreds the larger one begins where that ended, until little comes", async () => {
    await addBacklog(pool, { kind: "a", count: 600 });
    expect(await statementsOf(1_000)).toEqual(["claim_all"]);
    for (let n = 0; n < 3; n += 1) {
      now += 50;
      await addBacklog(pool, { kind: "a", count: 600 });
      expect(await statementsOf(1_000)).toEqual(["claim"]);
    }
    expect(await statementsOf(1_000)).toEqual(["claim", "claim"]);
    expect(await statementsOf(1_000)).toEqual(["claim_all"]);
  });

  it("it takes whatever may be asked for", async () => {
    const most = 2_147_483_647;
    const all = () =>
      claimer.claim(claimRequest(worker, [claimKind("a", { limit: most })], { limit: most }));
    await addBacklog(pool, { kind: "a", count: 3 });
    expect(await statements(all)).toEqual(["claim_all"]);
    await addBacklog(pool, { kind: "a", count: 3 });
    expect((await all()).jobs).toHaveLength(3);
  });

  it("when it fails the next is the larger one", async () => {
    const broken = claimRequest(worker, [claimKind("a", { backstop: 1e10 })], { limit: 5 });
    await expect(claimer.claim(broken)).rejects.toMatchObject({ code: "database" });
    expect(await statementsOf(5)).toEqual(["claim"]);
  });

  it("where more waits the larger one follows, and is kept to until all is taken once more", async () => {
    await addBacklog(pool, { kind: "a", count: 12 });
    expect(await statementsOf(5)).toEqual(["claim_all", "claim"]);
    expect(await statementsOf(5)).toEqual(["claim"]);
    expect((await claim(5)).jobs).toHaveLength(2);
    await addBacklog(pool, { kind: "a", count: 1 });
    expect(await statementsOf(5)).toEqual(["claim_all"]);
  });

  it("a kind that has no room for all that waits of it is nobody's reason to try again", async () => {
    await addBacklog(pool, { kind: "a", count: 12 });
    const capped = () =>
      claimer.claim(claimRequest(worker, [claimKind("a", { limit: 2 }), "b"], { limit: 5 }));
    expect(await statements(capped)).toEqual(["claim_all", "claim"]);
    for (let n = 0; n < 3; n += 1) expect(await statements(capped)).toEqual(["claim"]);
  });

  it("the larger one alone is sent for hundreds of kinds", async () => {
    await addBacklog(pool, { kind: "a", count: 3 });
    const kinds = ["a", ...Array.from({ length: 150 }, (_, n) => `many_${n}`)];
    const ofMany = () => claimer.claim(claimRequest(worker, kinds, { limit: 5 }));
    for (let n = 0; n < 2; n += 1) expect(await statements(ofMany)).toEqual(["claim"]);
  });

  it("what is due is promoted first", async () => {
    await addBacklog(pool, { kind: "a", count: 12 });
    await addBacklog(pool, { kind: "a", count: 1, tier: 0, dueInMs: -1_000 });
    expect(await statementsOf(20)).toEqual(["claim_all", "promote", "claim"]);
    expect(await statementsOf(20)).toEqual(["claim_all"]);
  });

  it("where something is due, what waits beside it is taken with it, and by no statement that is not heard", async () => {
    await addBacklog(pool, { kind: "a", count: 3 });
    await addBacklog(pool, { kind: "a", count: 2, tier: 0, dueInMs: -1_000 });
    expect((await claim(20)).jobs).toHaveLength(5);
  });

  it("the next that is scheduled is told of, whatever its tier", async () => {
    await addBacklog(pool, { kind: "a", count: 1, tier: 0, dueInMs: 90_000 });
    await addBacklog(pool, { kind: "a", count: 1, tier: 2, dueInMs: 30_000 });
    const { waitMs } = await claim(5);
    expect(waitMs).toBeGreaterThan(20_000);
    expect(waitMs).toBeLessThanOrEqual(30_000);
  });

  it("a job that somebody has locked is told of, and the others are claimed", async () => {
    await addBacklog(pool, { kind: "a", count: 3 });
    const other = await pool.connect();
    try {
      await other.query("begin");
      await other.query("select 1 from venturi_queue order by seq limit 1 for update");
      expect(await claim(5)).toMatchObject({ jobs: [{}, {}], blocked: true });
      expect(await statementsOf(5)).toEqual(["claim_all"]);
    } finally {
      await other.query("rollback");
      other.release();
    }
    expect(await claim(5)).toMatchObject({ jobs: [{}], blocked: false });
  });

  it("leases and backstops are those of the job and of its kind", async () => {
    await enqueue(store, job("a", { leaseMs: 5_000 }), job("a"), job("b"));
    const kinds = [
      claimKind("b", { leaseMs: 20_000, backstop: 2 }),
      claimKind("a", { leaseMs: 10_000, backstop: 1 }),
    ];
    await claimer.claim(claimRequest(worker, kinds, { limit: 5 }));
    const { rows } = await pool.query(
      `select extract(epoch from lease_expires_at - claimed_at)::int4 as lease, backstop, claimed_by as by
      from venturi_queue order by seq`,
    );
    expect(rows).toEqual([
      { lease: 5, backstop: 1, by: worker },
      { lease: 10, backstop: 1, by: worker },
      { lease: 20, backstop: 2, by: worker },
    ]);
  });
});
