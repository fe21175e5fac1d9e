import { testDatabase } from "@venturi-tooling/testing";
import { expect, it } from "vitest";
import type { PgQuery } from "../pg-like.ts";
import { PostgresStore } from "../postgres-store.ts";
import { Explainer } from "../testing/explainer.ts";

const { pool } = await testDatabase();

it("a batch of cleanup costs the same however many jobs have completed", async () => {
  // Forty thousand jobs a day, for five days.
  await pool.query(`insert into venturi_kinds (name) values ('k')`);
  await pool.query(
    `insert into venturi_jobs (id, created_at, kind_id, priority, payload)
     select lpad(to_hex(n), 32, '0')::uuid, now() - interval '10 days' + n * interval '2 seconds', k.id, 1, '{}'
     from generate_series(1, 200000) n, venturi_kinds k`,
  );
  await pool.query(
    `insert into venturi_journal (recorded_at, started_at, job_id, kind_id, run_no, failure_count, outcome)
     select b.created_at + interval '1 second', b.created_at, b.id, b.kind_id, 1, 0, 'c' from venturi_jobs b order by b.id`,
  );
  await pool.query("vacuum analyze venturi_jobs, venturi_journal");

  const explainer = await Explainer.open(pool, "custom");
  const batches: number[] = [];
  const store = new PostgresStore({
    pool: new Proxy(pool, {
      get(target, name) {
        if (name !== "query") return Reflect.get(target, name, target);
        return async (query: PgQuery) => {
          if (query.text.startsWith("with ended"))
            batches.push((await explainer.run(query)).buffers);
          return target.query(query);
        };
      },
    }),
  });
  const finishedBefore = new Date(Date.now() - 9 * 86_400_000);
  const statuses = ["completed"] as const;
  const { deleted } = await store.cleanup({ finishedBefore, kind: null, statuses });
  explainer.close();
  expect(deleted).toBeGreaterThan(40_000);
  expect(batches.length).toBeLessThan(100);
  // About thirty blocks a job: looking it up, locking it, deleting it with its entries and their index entries.
  expect(Math.max(...batches)).toBeLessThan(30_000);
}, 120_000);
