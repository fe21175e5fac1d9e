import { Backoff, defineTask } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterAll, expect, test } from "vitest";
import { Worker } from "./index.ts";
import { WorkerProcess } from "./testing/child-process.ts";
import { running } from "./testing/running.ts";
import { until } from "./testing/signals.ts";

const jobs = Number(process.env["COMPLETE_PROOF_JOBS"] ?? "200");
const processes = 3;
const concurrency = 8;
/** What a worker process starts before it is killed is drawn from this. */
let seed = 1;
const random = () => {
  seed = (seed * 48_271) % 2_147_483_647;
  return seed / 2_147_483_647;
};

const database = await testDatabase();
const store = await PostgresStore.connect({ connectionString: database.url });
const queue = new Queue(store);
await database.pool.query("create table written (job_id text not null, run integer not null)");

afterAll(() => store.close());
const count = async (sql: string) => Number((await database.pool.query(sql)).rows[0].count);

test(
  `${jobs} jobs that insert a row and complete in one transaction leave exactly ${jobs} rows, however often their workers are killed`,
  async () => {
    const Task = defineTask({
      kind: "proof",
      payload: v.object({ n: v.number() }),
      backstop: null,
    });
    const Other = defineTask({ kind: "proof_recoverer", payload: v.object({ n: v.number() }) });
    for (let at = 0; at < jobs; at += 5_000) {
      const size = Math.min(5_000, jobs - at);
      await queue.enqueueMany(Array.from({ length: size }, (_, n) => Task({ n: at + n })));
    }
    const from = performance.now();
    const worker = { workerTimeout: "1s", concurrency, pollMax: "1s" } as const;
    const start = () =>
      new WorkerProcess({
        url: database.url,
        kind: Task.kind,
        handlerMs: 20,
        isWriting: true,
        backoffMs: 1,
        worker,
      });
    let kills = 0;
    let isOver = false;
    const killAgainAndAgain = async (): Promise<void> => {
      while (!isOver) {
        const child = start();
        const starts = concurrency + random() * Math.max(60, jobs / 40);
        await until(() => isOver || child.lines.length > starts, { withinMs: 600_000 });
        if (!isOver) kills += 1;
        await child.kill("SIGKILL");
      }
    };
    const killing = Promise.all(Array.from({ length: processes }, killAgainAndAgain));
    const recoverer = new Worker(store, {
      workerTimeout: "1s",
      backoff: new Backoff({ base: 1, cap: 1 }),
    }).register(Other, () => undefined);
    await running(recoverer, async () => {
      await until(async () => (await count("select count(*) from venturi_queue")) === 0, {
        withinMs: 60_000 + jobs * 60,
        what: "every job has ended",
      });
      isOver = true;
      await killing;
    });
    const rows = await count("select count(*) from written");
    const distinct = await count("select count(distinct job_id) from written");
    const cutOff = await count("select count(*) from venturi_journal where outcome = 's'");
    const completed = await count("select count(*) from venturi_journal where outcome = 'c'");
    const seconds = ((performance.now() - from) / 1_000).toFixed(1);
    console.log(
      `${jobs} jobs, ${kills} kills, ${cutOff} runs cut off, ${completed} completions, ${rows} rows of ${distinct} jobs, ${seconds} s`,
    );
    expect({ rows, distinct, completed }).toEqual({ rows: jobs, distinct: jobs, completed: jobs });
    expect(kills).toBeGreaterThan(0);
    await expectInvariants(database.pool);
  },
  120_000 + jobs * 80,
);
