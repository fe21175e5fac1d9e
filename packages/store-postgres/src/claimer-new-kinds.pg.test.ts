import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import type pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Database } from "./database.ts";
import { Kinds } from "./kinds.ts";
import { pgSource } from "./pg-source.ts";
import { PostgresStore } from "./postgres-store.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import {
  claimRequest,
  enqueue,
  job,
  names,
  registration,
  settlement,
  startWorker,
} from "./testing/store-fixture.ts";

const { pool } = await testDatabase();

/** The transaction that has enqueued the first job of a kind, and stays open. */
let holder: pg.PoolClient;
let store: PostgresStore;
let counter = 0;
let kind: string;
let known: string;

beforeEach(async () => {
  counter += 1;
  [kind, known] = [`new ${counter}`, `known ${counter}`];
  store = new PostgresStore({ pool });
  await enqueue(store, job(known));
  holder = await pool.connect();
  await holder.query("begin");
  await store.within(holder).enqueue({ jobs: [job(kind)] });
});

afterEach(async () => {
  await holder.query("rollback");
  holder.release();
  await expectInvariants(pool);
});

const isStored = async (name: string) =>
  (await pool.query("select from venturi_kinds where name = $1", [name])).rows.length === 1;

describe("a kind whose first job is in a transaction that is still open", () => {
  it("keeps no worker from starting, nor from claiming what it knows, and is said to be waited for", async () => {
    const { logger, records } = recordingLogger();
    const kinds = [kind, known];
    const { worker } = await store.startWorker({ ...registration, kinds, logger });
    const { jobs } = await store.claim(claimRequest(worker, kinds));
    expect(jobs.map((claimed) => claimed.kind)).toEqual([known]);
    await store.settle({ worker, settlements: jobs.map((claimed) => settlement(claimed)) });
    expect(await store.claim(claimRequest(worker, kinds))).toMatchObject({
      jobs: [],
      waitMs: null,
    });
    expect(records).toMatchObject([{ level: "warn", fields: { kinds: [kind] } }]);
    expect(records[0]?.message).toContain("in a transaction that is still open");
  });

  it("leaves nothing to claim where it is the only one, which may change", async () => {
    const worker = await startWorker(store, { kinds: [kind] });
    const nothing = { jobs: [], waitMs: null, blocked: true };
    expect(await store.claim(claimRequest(worker, [kind]))).toEqual(nothing);
  });

  it("is claimed by the next claim after the commit", async () => {
    const worker = await startWorker(store, { kinds: [kind, known] });
    await store.claim(claimRequest(worker, [kind, known]));
    await holder.query("commit");
    const { jobs } = await store.claim(claimRequest(worker, [kind, known]));
    expect(jobs.map((claimed) => claimed.kind)).toEqual([kind]);
  });

  it("is tried again every few seconds, and warned of once; after a rollback it is registered", async () => {
    const { logger, records } = recordingLogger();
    const options = { preparedStatements: true, owned: false, logger };
    const database = new Database(pgSource(pool, options), names.prefix, logger);
    let now = 0;
    const kinds = new Kinds(database, names, logger, () => now);
    const request = claimRequest(1, [kind, known]);
    const claimed = async () => (await kinds.known(request))?.kinds.map((of) => of.kind);
    expect(await claimed()).toEqual([known]);
    now = 10_000;
    expect(await claimed()).toEqual([known]);
    expect(records).toHaveLength(1);
    await holder.query("rollback");
    // Not yet: it is looked up by every claim, but a row of its own is tried for now and then.
    expect(await claimed()).toEqual([known]);
    expect(await isStored(kind)).toBe(false);
    now = 20_000;
    expect(await claimed()).toEqual([kind, known]);
    expect(await isStored(kind)).toBe(true);
  });

  it("holds up no other kind that nobody has used yet for longer than that", async () => {
    const fresh = `fresh ${counter}`;
    const worker = await startWorker(store, { kinds: [fresh, kind] });
    await enqueue(store, job(fresh));
    const { jobs } = await store.claim(claimRequest(worker, [fresh, kind]));
    expect(jobs.map((claimed) => claimed.kind)).toEqual([fresh]);
  });
});
