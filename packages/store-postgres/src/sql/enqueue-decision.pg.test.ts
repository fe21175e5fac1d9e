import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { removeJobs } from "../testing/backlog.ts";
import { bareEnqueue, journalOf, liveJobs } from "../testing/bare-sql.ts";

const { pool } = await testDatabase();

beforeEach(() => removeJobs(pool));
afterAll(() => expectInvariants(pool));

const keyed = (changes: object = {}) => ({ kind: "k", dedup_key: "key", ...changes });

/** A pending job, as somebody who is about to decide has read it. */
async function pending(changes: object = {}) {
  await bareEnqueue(pool, [keyed({ payload: 1, ...changes })]);
  const { rows } = await pool.query<{ candidate: string }>(
    `select candidate from venturi_merge_candidates_v1('[{ "kind": "k", "dedup_key": "key" }]')`,
  );
  const { id, version, run_count } = JSON.parse(rows[0]?.candidate ?? "");
  return { candidate: id, version, run_count };
}

const decide = (decision: unknown) => bareEnqueue(pool, [keyed({ payload: 2, decision })]);

describe("a decision that is not acceptable says what of it is not, and changes nothing", () => {
  const needs = "needs candidate, version and run_count";
  it.each([
    ["action", 5],
    ["action", {}],
    ["action", { action: "merge" }],
    [needs, { action: "keep", candidate: null }],
    [needs, { action: "replace", version: undefined }],
    [needs, { action: "with", payload: 3, run_count: undefined }],
    ["payload", { action: "with" }],
    ["uuid", { action: "keep", candidate: "job" }],
    ["integer", { action: "keep", version: "latest" }],
    ["integer", { action: "keep", run_count: 1e20 }],
    ["timestamp", { action: "with", payload: 3, visible_at: "soon" }],
    ["date/time", { action: "with", payload: 3, visible_at: "2030-13-01" }],
    ["date/time", { action: "with", payload: 3, visible_at: 1_900_000_000_000 }],
    ["visible_at", { action: "with", payload: 3, visible_at: 20_330_101 }],
    ["priority", { action: "with", payload: 3, priority: "urgent" }],
    ["priority", { action: "with", payload: 3, priority: 2 }],
    ["skipped", { action: "insert", skipped: "one" }],
    ["skipped", { action: "insert", skipped: [1] }],
    ["skipped", { action: "insert", skipped: ["019AD0C5-3F2E-7A41-B0DE-61C9A7D51C64"] }],
  ])("%s: %j", async (what, changes) => {
    const read = await pending();
    const before = await liveJobs(pool);
    const decision = typeof changes === "object" ? { ...read, ...changes } : changes;
    const call = bareEnqueue(pool, [{ kind: "k" }, keyed({ decision }), {}]);
    await expect(call).rejects.toMatchObject({
      code: "VT002",
      message: expect.stringMatching(`^cannot enqueue job 2: decision.*${what}`),
    });
    expect(await liveJobs(pool)).toEqual(before);
  });

  it("also where the job has no key", async () => {
    const call = bareEnqueue(pool, [{ kind: "k", decision: { action: "insert" } }]);
    await expect(call).rejects.toMatchObject({ code: "VT002" });
  });
});

describe("a member of a decision that is null counts as left out", () => {
  it("with leaves the due time and the priority as they are", async () => {
    const read = await pending({ delay_ms: 60_000, priority: "low" });
    const [before] = await liveJobs(pool);
    await decide({ action: "with", ...read, payload: 3, visible_at: null, priority: null });
    const [after] = await liveJobs(pool);
    const { visible_at, priority } = before ?? {};
    expect(after).toMatchObject({ payload: 3, visible_at, priority, scheduled: true });
  });

  it("insert skips nobody", async () => {
    await decide({ action: "insert", skipped: null });
    expect(await liveJobs(pool)).toHaveLength(1);
    await expect(decide({ action: "insert", skipped: null })).rejects.toMatchObject({
      code: "VT003",
    });
  });

  it("a decision is none", async () => {
    await pending();
    await decide(null);
    expect(await liveJobs(pool)).toMatchObject([{ payload: 2 }]);
  });

  it("but a payload is one, and so is a carry", async () => {
    const read = await pending();
    await decide({ action: "with", ...read, payload: 3, carry: 1 });
    await decide({ action: "with", ...read, version: 1, payload: null, carry: null });
    const [job, ...others] = await liveJobs(pool);
    expect(others).toEqual([]);
    expect(job).toMatchObject({ payload: null, carry: null });
    const { rows } = await pool.query("select carry is null as initial from venturi_queue");
    expect(rows).toEqual([{ initial: false }]);
    expect(await journalOf(pool, job?.id ?? "")).toHaveLength(2);
  });
});

it("the time of a decision may be infinity, which is cut to the farthest there is", async () => {
  const read = await pending();
  await decide({ action: "with", ...read, payload: 3, visible_at: "infinity" });
  const [job] = await liveJobs(pool);
  expect(job?.visible_at).toEqual(new Date("9999-01-01T00:00:00Z"));
});
