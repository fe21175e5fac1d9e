import { expectInvariants } from "@venturi-tooling/testing";
import fc from "fast-check";
import type pg from "pg";
import { emptyTables } from "../empty-tables.ts";
import { stopSqlClock } from "../sql-clock.ts";
import { job, registration } from "../store-fixture.ts";
import { Model } from "./model.ts";
import { compareAll, operating } from "./operating.ts";
import { Pair } from "./pair.ts";
import { producing } from "./producing.ts";
import { working } from "./working.ts";

const { enqueue, merge } = producing;
const { claim, settle, handBack, extend, recover, startWorker, stopWorker, beat } = working;
const { clock, cancel, retry, cleanup, query, look } = operating;

/** Those that make something happen stand there more than once. */
const steps = [
  ...[enqueue, enqueue, enqueue, merge, merge],
  ...[claim, claim, claim, claim, settle, settle, settle],
  ...[handBack, extend, recover, recover, startWorker, stopWorker, beat],
  ...[clock, clock, clock, cancel, retry, cleanup, query, look],
];

export interface LockstepResult {
  readonly scenarios: number;
  readonly commands: number;
}

/** Runs scenarios on the PostgreSQL store and the one in memory; rejects with the smallest one that tells them apart. */
export async function runLockstep(
  pool: pg.Pool,
  options: {
    readonly scenarios: number;
    readonly maxCommands: number;
    readonly seed?: number | undefined;
  },
): Promise<LockstepResult> {
  const { scenarios: numRuns, maxCommands, seed } = options;
  const anyCommands = fc.noBias(fc.commands(steps, { maxCommands, size: "max" }));
  const sqlClock = await stopSqlClock(pool);
  let scenarios = 0;
  let commands = 0;
  const property = fc.asyncProperty(anyCommands, async (some) => {
    await emptyTables(pool);
    const model = new Model();
    const pair = new Pair(pool, sqlClock, await sqlClock.now());
    await pair.startWorker((store) => store.startWorker({ ...registration, name: "w0" }));
    model.workers = 1;
    // Something to claim and to merge with from the first command on.
    const jobs = [0, 1, 2, 3].map((n) =>
      job(n % 2 === 0 ? "a" : "b", { id: model.newId(), dedupKey: n < 2 ? "k" : null }),
    );
    await pair.both(
      "enqueue",
      (store) => store.enqueue({ jobs }),
      (answer) => answer,
    );
    await fc.asyncModelRun(() => ({ model, real: pair }), some);
    await compareAll(model, pair);
    await expectInvariants(pool);
    scenarios += 1;
    commands += model.commands;
  });
  await fc.assert(property, { numRuns, ...(seed === undefined ? {} : { seed }) });
  return { scenarios, commands };
}
