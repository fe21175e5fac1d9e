import { expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import { TcpProxy } from "@venturi-tooling/testing/tcp-proxy";
import pg from "pg";
import { expect, test } from "vitest";
import { PostgresStore } from "./postgres-store.ts";
import { failureOf } from "./testing/failure-of.ts";
import { registration, startWorker } from "./testing/store-fixture.ts";
import { until } from "./testing/until.ts";

const { url } = await testDatabase();
expectNoWarnings();

/** A store on a pool that waits for ever, through a proxy, with the beat of a worker that may be silent for so long. */
async function throughProxy(workerTimeoutMs: number, config: pg.PoolConfig = {}) {
  const proxy = await TcpProxy.before(url);
  const pool = new pg.Pool({ connectionString: proxy.url, max: 2, ...config });
  const store = new PostgresStore({ pool });
  const worker = await startWorker(store);
  const beat = () => store.beat({ ...registration, worker, workerTimeoutMs });
  await beat();
  const close = async () => {
    proxy.cut();
    await pool.end();
    await proxy.close();
  };
  return { proxy, pool, store, beat, close };
}

test.each([
  ["by itself", {}],
  ["in a transaction", { options: "-c default_transaction_isolation=serializable" }],
])(
  "a beat that nobody answers, %s, is given up in time for the next one to be heard of before the worker's timeout",
  async (_, config) => {
    const { proxy, beat, close } = await throughProxy(3_000, config);
    proxy.halfOpen();
    const at = performance.now();
    expect((await failureOf(beat())).isRetryable).toBe(true);
    // Eight seconds is how long other statements wait.
    expect(performance.now() - at).toBeLessThan(4_000);
    await beat();
    await close();
  },
);

test("connections that are forgotten while they are made do not fill a pool that waits for ever", async () => {
  const { proxy, pool, beat, close } = await throughProxy(1_500);
  proxy.mode = "swallow";
  for (let n = 0; n < 4; n += 1) expect((await failureOf(beat())).isRetryable).toBe(true);
  proxy.halfOpen();
  proxy.mode = "pass";
  await beat();
  await until(() => pool.totalCount === pool.idleCount);
  expect(pool.totalCount).toBeLessThanOrEqual(2);
  await close();
});

test("a beat that waits for others to give a connection back is made when they do", async () => {
  const { pool, beat, close } = await throughProxy(1_500);
  const taken = await Promise.all([pool.connect(), pool.connect()]);
  const beaten = beat();
  // Longer than it would wait for an answer.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  for (const client of taken) client.release();
  await beaten;
  await close();
});
