import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { CamelCasePlugin, Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { PostgresStore } from "./postgres-store.ts";
import { removeJobs } from "./testing/backlog.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import { claimRequest, enqueue, job, settlement, startWorker } from "./testing/store-fixture.ts";

const { url, pool } = await testDatabase();
const pools: pg.Pool[] = [];

beforeEach(() => removeJobs(pool));
afterEach(async () => {
  await pool.query(`alter database ${quotedName} reset all`);
  await expectInvariants(pool);
});
afterAll(() => Promise.all(pools.map((some) => some.end())));

const quotedName = pg.escapeIdentifier(decodeURIComponent(new URL(url).pathname.slice(1)));
const setDefault = (level: string) =>
  pool.query(`alter database ${quotedName} set default_transaction_isolation = '${level}'`);

function makePool(max: number): pg.Pool {
  const made = new pg.Pool({ connectionString: url, max });
  made.on("error", () => undefined);
  pools.push(made);
  return made;
}

/** Claims and completes until nothing is left; returns what was completed. */
async function drain(store: PostgresStore): Promise<string[]> {
  const worker = await startWorker(store, { kinds: ["k"] });
  const done: string[] = [];
  for (;;) {
    const { jobs } = await store.claim(claimRequest(worker, ["k"]));
    if (jobs.length === 0) return done;
    let settlements = jobs.map((claimed) => settlement(claimed));
    // Another claimer's look at a row that has just been claimed holds it for a moment.
    while (settlements.length > 0) {
      const { verdicts } = await store.settle({ worker, settlements });
      expect(verdicts).not.toContain("lost");
      settlements = settlements.filter((_, index) => verdicts[index] === "busy");
    }
    done.push(...jobs.map(({ id }) => id));
  }
}

describe.each(["serializable", "repeatable read"])("where %s is the default", (level) => {
  it.each(["pg", "kysely"])(
    "four claimers and four producers work without a conflict (%s)",
    async (driver) => {
      await setDefault(level);
      const { logger, records } = recordingLogger();
      const lent = makePool(8);
      const db = new Kysely<unknown>({
        dialect: new PostgresDialect({ pool: lent }),
        plugins: [new CamelCasePlugin()],
      });
      const store =
        driver === "pg"
          ? new PostgresStore({ pool: lent, logger })
          : new PostgresStore({ db, logger });
      const producing = Array.from({ length: 4 }, async (_, producer) => {
        const ids: string[] = [];
        for (let n = 0; n < 20; n += 1) {
          const jobs = Array.from({ length: 10 }, (__, i) =>
            job(
              "k",
              i === 0 ? { dedupKey: `${n}`, merge: "independent" } : { payload: `${producer}` },
            ),
          );
          ids.push(...(await enqueue(store, ...jobs)));
        }
        return ids;
      });
      const early = Promise.all(Array.from({ length: 4 }, () => drain(store)));
      const enqueued = (await Promise.all(producing)).flat();
      const done = [...(await early).flat(), ...(await drain(store))];
      expect(done.sort()).toEqual(enqueued.sort());
      expect(records).toEqual([
        { level: "info", message: expect.stringContaining("READ COMMITTED"), fields: { level } },
      ]);
    },
  );
});

describe("a default that becomes stricter while the store is in use", () => {
  it("is noticed by claims, after which nothing conflicts", async () => {
    const lent = makePool(6);
    const store = new PostgresStore({ pool: lent });
    const before = await enqueue(store, job("k"));
    expect(await drain(store)).toEqual(before);
    await setDefault("serializable");
    await dropConnections(lent);
    await drain(store);
    const jobs = await enqueue(store, ...Array.from({ length: 200 }, () => job("k")));
    const done = await Promise.all(Array.from({ length: 4 }, () => drain(store)));
    expect(done.flat().sort()).toEqual([...jobs].sort());
  });

  it("is noticed by a producer whose statement fails for it", async () => {
    const lent = makePool(6);
    const store = new PostgresStore({ pool: lent });
    await enqueue(store, job("k"));
    await setDefault("serializable");
    await dropConnections(lent);
    const outcomes: string[] = [];
    for (let round = 0; round < 10; round += 1) {
      const same = () => enqueue(store, job("k", { dedupKey: "same" }));
      const results = await Promise.allSettled(Array.from({ length: 6 }, same));
      const failed = results.filter(({ status }) => status === "rejected");
      for (const result of failed)
        expect(result).toMatchObject({ reason: { sqlState: "40001", isRetryable: true } });
      outcomes.push(failed.length === 0 ? "fine" : "conflicts");
    }
    expect(outcomes.slice(2)).toEqual(Array(8).fill("fine"));
  });
});

/** New connections are opened from here on, with what is the default by then. */
async function dropConnections(lent: pg.Pool): Promise<void> {
  const clients = await Promise.all(Array.from({ length: lent.options.max }, () => lent.connect()));
  for (const client of clients) client.release(true);
}
