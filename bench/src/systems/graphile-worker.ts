import { Logger, run, runMigrations } from "graphile-worker";
import pg from "pg";
import { Meter } from "../meter.ts";
import { batchSize, payload, readSettings } from "./settings.ts";

const { databaseUrl, jobs, concurrency, payloadBytes } = readSettings();
const logger = new Logger(() => () => undefined);

await runMigrations({ connectionString: databaseUrl, logger });
const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
const meter = new Meter(databaseUrl, jobs);
await meter.enqueue(async () => {
  for (let first = 0; first < jobs; first += batchSize) {
    const specs = Array.from({ length: batchSize }, (_, index) => ({
      identifier: "noop",
      payload: payload(first + index, payloadBytes),
    }));
    // Its documented way to add many jobs at once.
    await pool.query(
      "select graphile_worker.add_jobs(array(select json_populate_recordset(null::graphile_worker.job_spec, $1::json)))",
      [JSON.stringify(specs)],
    );
  }
});
await pool.end();
const figures = await meter.drain(async () => {
  const runner = await run({
    connectionString: databaseUrl,
    concurrency,
    noHandleSignals: true,
    logger,
    taskList: { noop: () => meter.handled() },
    // Its documentation's settings for throughput: a local queue, and results written in batches without delay.
    preset: {
      worker: {
        maxPoolSize: concurrency + 1,
        localQueue: { size: 500 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
  });
  await meter.allHandled;
  await runner.stop();
}, null);
process.stdout.write(`${JSON.stringify(figures)}\n`);
