import { type JobFilter, resolveJobFilter, toUuid } from "@venturi/core";
import { testDatabase } from "@venturi-tooling/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Explainer } from "../testing/explainer.ts";
import { names } from "../testing/store-fixture.ts";
import { queryJobs } from "./query-jobs.ts";
import { readJournal } from "./read-journal.ts";

const { pool } = await testDatabase();
const count = 100_000;
let explainer: Explainer;
let middle: Date;
let someId: string;

beforeAll(async () => {
  // Jobs that completed one a second, the last of them now; and a few live and dead ones among them.
  await pool.query(`insert into venturi_kinds (name) values ('done'), ('live'), ('dead')`);
  const kind = (name: string) => `(select id from venturi_kinds where name = '${name}')`;
  const at = (n: string) => `date_trunc('second', now()) - make_interval(secs => ${count} - ${n})`;
  const ulid = (n: string) =>
    `(lpad(to_hex((extract(epoch from ${at(n)}) * 1000)::bigint), 12, '0') || substr(md5(${n}::text), 13))::uuid`;
  await pool.query(`insert into venturi_jobs (id, created_at, kind_id, priority, payload)
    select ${ulid("n")}, ${at("n")}, case when n % 1000 = 0 then ${kind("live")} when n % 1000 = 1 then ${kind("dead")}
      else ${kind("done")} end, 1, '{"n": 12345678}' from generate_series(1, ${count}) n`);
  await pool.query(`insert into venturi_journal (recorded_at, started_at, job_id, kind_id, run_no, failure_count, outcome)
    select b.created_at, b.created_at, b.id, b.kind_id, 1, 0, case when b.kind_id = ${kind("dead")} then 'd' else 'c' end::"char"
    from venturi_jobs b where b.kind_id <> ${kind("live")} order by b.id`);
  await pool.query(`insert into venturi_queue (job_id, visible_at, kind_id, priority)
    select id, created_at, kind_id, 1 from venturi_jobs where kind_id = ${kind("live")} order by id`);
  await pool.query(`insert into venturi_dead (job_id, seq, visible_at, finished_at, kind_id, run_count, failure_count, version, priority)
    select id, 0, created_at, created_at, kind_id, 1, 1, 0, 1 from venturi_jobs where kind_id = ${kind("dead")}`);
  const { rows } = await pool.query(
    `select venturi_ulid(id) as id, created_at from venturi_jobs order by id offset ${count / 2 + 10} limit 1`,
  );
  middle = rows[0].created_at;
  someId = rows[0].id;
  await pool.query("vacuum analyze");
  explainer = await Explainer.open(pool, "custom");
}, 60_000);
afterAll(() => explainer.close());

const seconds = (n: number) => new Date(middle.getTime() + n * 1000);

const filters: [string, () => JobFilter, rows: number, pages: number][] = [
  ["the newest jobs", () => ({}), 100, 2_000],
  ["the newest completed jobs", () => ({ status: "completed" }), 100, 2_000],
  ["a page from the middle", () => ({ cursor: `1.${someId}` }), 100, 2_000],
  [
    "completed jobs from the middle",
    () => ({ status: "completed", cursor: `1.${someId}` }),
    100,
    2_000,
  ],
  ["a kind that nearly all are of", () => ({ kind: "done" }), 100, 2_000],
  ["live jobs", () => ({ status: ["pending", "claimed"] }), 100, 2_000],
  ["dead jobs", () => ({ status: "dead" }), 100, 2_000],
  ["jobs by id", () => ({ ids: [someId] }), 1, 50],
  [
    "what ended in a minute",
    () => ({ finishedSince: seconds(0), finishedUntil: seconds(60) }),
    60,
    4_000,
  ],
  [
    "what died in an hour",
    () => ({ status: "dead", finishedSince: seconds(0), finishedUntil: seconds(3600) }),
    3,
    4_000,
  ],
];

describe("among 100,000 jobs", () => {
  it.each(filters)("%s cost a bounded number of pages", async (_, makeFilter, rows, pages) => {
    const query = resolveJobFilter(makeFilter());
    const { statement, values } = queryJobs(names, { ...query, limit: query.limit + 1 });
    const { nodes, buffers } = await explainer.run({ text: statement.text, values: [...values] });
    expect(nodes[0]?.["Actual Rows"]).toBeGreaterThanOrEqual(rows);
    expect(nodes[0]?.["Actual Rows"]).toBeLessThanOrEqual(rows + 1);
    expect(buffers).toBeLessThan(pages);
  });

  it("a journal costs a few pages", async () => {
    const { text } = readJournal(names);
    const { nodes, buffers } = await explainer.run({ text, values: [toUuid(someId), null] });
    expect(nodes[0]?.["Actual Rows"]).toBeLessThanOrEqual(1);
    expect(buffers).toBeLessThan(20);
  });
});
