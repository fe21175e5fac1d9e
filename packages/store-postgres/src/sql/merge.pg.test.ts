import { testDatabase } from "@venturi-tooling/testing";
import { describe, expect, it } from "vitest";
import { bareEnqueue, liveJobs } from "../testing/bare-sql.ts";

const { pool } = await testDatabase();

const key = (changes: object = {}) => ({ kind: "k", dedup_key: "key", ...changes });
const candidates = async (keys: unknown) =>
  (
    await pool.query<{ ord: number; candidate: string | null }>(
      "select ord, candidate from venturi_merge_candidates_v1($1::text::jsonb)",
      [JSON.stringify(keys)],
    )
  ).rows;

describe("keys that are not acceptable are refused with VT002", () => {
  it.each([["text"], [5], [{}], [key()]])("as no array: %j", async (keys) => {
    await expect(candidates(keys)).rejects.toMatchObject({
      code: "VT002",
      message: "cannot read candidates: keys must be an array",
    });
  });

  it.each([
    ["object", 5],
    ["object", null],
    ["object", [key()]],
    ["integer", key({ limit: "all" })],
    ["range", key({ limit: 1e20 })],
    ["negative", key({ limit: -1 })],
    ["boolean", key({ wait: "maybe" })],
    ["array", key({ ids: "019ad0c5-3f2e-7a41-b0de-61c9a7d51c64" })],
    ["array", key({ ids: {} })],
    ["uuid", key({ ids: ["job"] })],
  ])("as one of them with %s: %j", async (what, bad) => {
    await bareEnqueue(pool, [key({ merge: "keep" })]);
    await expect(candidates([key(), bad, key()])).rejects.toMatchObject({
      code: "VT002",
      message: expect.stringMatching(new RegExp(`^cannot read candidates of key 2: .*${what}`)),
    });
  });
});

it("what is null in a key counts as left out", async () => {
  await bareEnqueue(pool, [key({ merge: "keep" })]);
  const found = await candidates([key({ limit: null, wait: null, ids: null })]);
  expect(found).toEqual([{ ord: 1, candidate: expect.any(String) }]);
  expect(await candidates(undefined)).toEqual([]);
  expect(await candidates([])).toEqual([]);
});

it("jobs with keys are merged where the database casts numbers to text by itself", async () => {
  const client = await pool.connect();
  try {
    await client.query(
      "begin; create cast (integer as text) with inout as implicit; create cast (bigint as text) with inout as implicit",
    );
    const merged = { kind: "casts", dedup_key: "key" };
    await bareEnqueue(client, [merged]);
    await client.query("select * from venturi_merge_candidates_v1($1)", [
      JSON.stringify([{ ...merged, wait: true }]),
    ]);
    await bareEnqueue(client, [merged]);
    expect(await liveJobs(client, "k.name = 'casts'")).toHaveLength(1);
  } finally {
    await client.query("rollback");
    client.release();
  }
});
