// One producer and one worker on the built packages, with whatever Node runs this.
import assert from "node:assert/strict";
import { defineTask } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { Worker } from "@venturi/worker";
import pg from "pg";
import * as v from "valibot";

const JOBS = 50;
const Count = defineTask({ kind: "count", payload: v.object({ n: v.number() }) });

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
const store = new PostgresStore({ pool });
await store.migrate();

const seen = new Set();
const enough = new AbortController();
const worker = new Worker(store, { concurrency: 8 }).register(Count, async ({ n }) => {
  seen.add(n);
  if (seen.size === JOBS) enough.abort();
});
const running = worker.run({ signal: enough.signal });

const queue = new Queue(pool);
const jobs = Array.from({ length: JOBS }, (_, n) => Count({ n }));
const ids = await queue.enqueueMany(jobs);
const { unreleased } = await running;

assert.equal(new Set(ids).size, JOBS);
assert.deepEqual(unreleased, []);
assert.equal(seen.size, JOBS);
const operator = new Queue(store);
for (const id of ids) assert.equal((await operator.job(id))?.status, "completed");

await store.close();
await pool.end();
console.log(`${JOBS} jobs on Node ${process.versions.node}`);
