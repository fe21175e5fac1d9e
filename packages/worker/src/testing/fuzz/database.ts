import {
  Backoff,
  createJobIds,
  defineTask,
  isVenturiError,
  type JobContext,
  Merge,
  Outcome,
} from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import fc from "fast-check";
import type pg from "pg";
import * as v from "valibot";
import { Worker } from "../../index.ts";
import { type LogRecord, recordingLogger } from "../recording-logger.ts";
import { until } from "../signals.ts";
import { rowWrites } from "./rows.ts";
import { anything, hostileTexts, json, number, open, secret, text } from "./values.ts";

export interface DatabaseFuzz {
  readonly pool: pg.Pool;
  readonly inputs: number;
  readonly seed: number;
}

export interface DatabaseReport {
  readonly inputs: number;
  /** How many of them the server refused, by SQLSTATE or error code. */
  readonly refused: Readonly<Record<string, number>>;
  readonly runs: number;
  readonly records: readonly LogRecord[];
}

/** What the functions say to what they do not like; anything else would be a fault of theirs. */
const answers = /^(VT001|VT002|VT003|22\w{3}|23505|40001|40P01|55P03|54000|54001)$/;
/** What a caller may be told. */
const codes = new Set(["invalid-argument", "serialization", "validation", "merge", "id-conflict"]);
/** Rows by hand may be refused for what they are. */
const refusals = /^(22|23|42804|428C9|54)/;

const kinds = ["fuzz a", "fuzz b", "'; drop table venturi_jobs; --"];
const keys = fc.oneof(fc.constantFrom("k", "", "'", "$1", "__proto__"), text);

/**
 * Puts generated input into the database in every way there is, while workers run what comes of it: jobs of a
 * producer, calls of the SQL functions, rows written by hand, filters of an operator.
 */
export async function fuzzDatabase({ pool, inputs, seed }: DatabaseFuzz): Promise<DatabaseReport> {
  const { logger, records } = recordingLogger();
  const store = new PostgresStore({ pool, logger });
  const producer = new Queue(pool, { logger });
  const operator = new Queue(store);
  const refused: Record<string, number> = {};
  const state = { isOver: false, runs: 0, seed };
  const random = () => {
    state.seed = (Math.imul(state.seed, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state.seed / 0x7fffffff;
  };
  const wildly = fc.sample(fc.oneof(anything, text), { numRuns: 2_000, seed });
  const some = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;

  const tasks = kinds.map((kind, n) =>
    defineTask({
      kind,
      payload: v.unknown(),
      carry: v.unknown(),
      ...(n === 2 ? { backstop: null } : {}),
      dedupKey: (payload) => {
        const { key } = (payload ?? {}) as { key?: string };
        return typeof key === "string" ? key : undefined;
      },
      merge:
        n === 0
          ? "replace"
          : (incoming) => (random() < 0.5 ? Merge.keep() : Merge.with(incoming, { page: 1 })),
    }),
  );
  /** Ends a run in any way that a handler may; once all is over, as it should. */
  const handler = async (_: unknown, ctx: JobContext<unknown, never>) => {
    state.runs += 1;
    if (state.isOver || ctx.runCount > 5) return;
    const wild = open(some(wildly));
    if (random() < 0.3) ctx.attach(wild);
    if (random() < 0.3) ctx.carry = wild;
    const way = random();
    if (way < 0.2) throw wild;
    if (way < 0.3) return Outcome.pauseFor(0, typeof wild === "string" ? wild : "a note");
    if (way < 0.4) return Outcome.completed(some(hostileTexts));
    if (way < 0.45) return wild as undefined;
    return undefined;
  };
  const backoff = new Backoff({ base: 1, cap: 1 });
  const workerOf = () => {
    const worker = new Worker(store, {
      ...{ concurrency: 20, pollMax: 50, workerTimeout: 1_000 },
      ...{ backoff, logger },
    });
    for (const task of tasks) worker.register(task, handler);
    return worker;
  };

  const newId = createJobIds({ now: Date.now, random });
  const uuid = fc.oneof(
    fc.uuid(),
    fc.constantFrom("00000000-0000-0000-0000-000000000000", "x", ""),
    fc.constant(undefined),
  );
  const wire = (input: fc.Arbitrary<unknown>) => fc.oneof({ weight: 5, arbitrary: input }, json);
  const call = fc.array(
    fc.record(
      {
        id: wire(uuid),
        kind: wire(fc.constantFrom(...kinds, "other")),
        payload: json,
        priority: wire(fc.constantFrom("high", "normal", "low")),
        dedup_key: wire(keys),
        merge: wire(fc.constantFrom("keep", "replace", "independent")),
        delay_ms: wire(number),
        run_at: wire(fc.constantFrom("2030-01-01", "infinity", "-infinity", "now", "yesterday")),
        lease_ms: wire(number),
        headers: wire(fc.dictionary(text, text)),
        decision: wire(
          fc.record(
            {
              action: fc.constantFrom("insert", "keep", "replace", "with", "independent", "x"),
              candidate: wire(uuid),
              version: wire(number),
              run_count: wire(number),
              payload: json,
              carry: json,
              visible_at: wire(fc.constantFrom("2030-01-01", "infinity", "x")),
              priority: wire(text),
              skipped: wire(fc.array(text)),
            },
            { requiredKeys: [] },
          ),
        ),
      },
      { requiredKeys: [] },
    ),
    { maxLength: 3 },
  );

  const functions = fc.oneof(
    fc.tuple(fc.constant("enqueue_v1"), fc.oneof({ weight: 9, arbitrary: call }, json)),
    fc.tuple(
      fc.constant("merge_candidates_v1"),
      fc.oneof(
        fc.array(
          fc.record(
            { kind: wire(fc.constantFrom(...kinds)), dedup_key: keys, limit: wire(number) },
            { requiredKeys: [] },
          ),
          { maxLength: 3 },
        ),
        json,
      ),
    ),
  );
  const ways: readonly { readonly share: number; readonly act: Act }[] = [
    {
      share: 0.35,
      act: manyOf(functions, async ([name, input]) => {
        const query = `select * from venturi_${name}($1::text::jsonb)`;
        await asServer(pool.query(query, [JSON.stringify(input)]), answers);
      }),
    },
    {
      share: 0.35,
      act: manyOf(fc.tuple(json, keys, fc.nat(2), fc.nat(9)), async ([value, key, task, luck]) => {
        const payload = luck < 3 ? { key, value } : { value };
        const options = luck === 0 ? { id: newId(), headers: { trace: secret } } : {};
        await asCaller(producer.enqueue((tasks[task] as (typeof tasks)[0])(payload), options));
      }),
    },
    {
      share: 0.2,
      act: manyOf(rowWrites, ({ sql, values }) => asServer(pool.query(sql, [...values]), refusals)),
    },
    {
      share: 0.1,
      act: manyOf(fc.tuple(fc.nat(5), text, anything), async ([verb, name, wild]) => {
        const value = open(wild) as never;
        await asCaller(
          [
            () => operator.jobs({ kind: name, limit: 3 }),
            () => operator.jobs({ kind: [name, "fuzz a"], status: "pending", limit: 3 }),
            () => operator.jobs({ cursor: name, ids: value }),
            () => operator.journal(value),
            () => operator.stats(),
            () => operator.cleanup({ finishedBefore: new Date(0), kind: name }),
          ][verb]?.() ?? Promise.resolve(),
        );
      }),
    },
  ];

  async function asServer(query: Promise<unknown>, expected: RegExp): Promise<void> {
    try {
      await query;
    } catch (error) {
      const { code = "", message } = error as { code?: string; message: string };
      refused[code] = (refused[code] ?? 0) + 1;
      if (!expected.test(code)) throw new Error(`${code}: ${message}`);
    }
  }

  async function asCaller(promise: Promise<unknown>): Promise<void> {
    try {
      await promise;
    } catch (error) {
      if (!isVenturiError(error)) throw error;
      refused[error.code] = (refused[error.code] ?? 0) + 1;
      if (!codes.has(error.code) && !error.isRetryable) throw error;
      if (error.message.includes(secret)) throw new Error(`told a payload: ${error.message}`);
    }
  }

  const stop = new AbortController();
  const running = [workerOf(), workerOf()].map((worker) => worker.run({ signal: stop.signal }));
  let done = 0;
  for (const { share, act } of ways) done += await act(Math.ceil(inputs * share), seed);
  stop.abort();
  await Promise.all(running);

  // Whatever has been put in: what can be run now is run, and nothing stays claimed by who is gone.
  state.isOver = true;
  await pool.query("update venturi_kinds set paused_at = null");
  // A worker looks at everything when it starts, and seldom afterwards.
  for (let round = 0; (await stuckRows(pool)).length > 0; round += 1) {
    if (round === 20) {
      const rows = JSON.stringify((await stuckRows(pool)).slice(0, 3));
      const { rows: holder } = await pool.query("select * from venturi_workers where id = 998");
      throw new Error(`stuck: ${rows} ${JSON.stringify(holder)}`);
    }
    const last = new AbortController();
    const ended = workerOf().run({ signal: last.signal });
    const isDone = async () => (await stuckRows(pool)).length === 0;
    await until(isDone, { withinMs: 2_000, everyMs: 100 }).catch(() => undefined);
    last.abort();
    await ended;
  }
  await store.close();
  return { inputs: done, refused, runs: state.runs, records };
}

type Act = (count: number, seed: number) => Promise<number>;

/** Many of one kind of input, twenty at a time, so that calls share statements and meet one another. */
function manyOf<T>(inputs: fc.Arbitrary<T>, act: (input: T) => Promise<void>): Act {
  return async (count, seed) => {
    for (let part = 0; part * 1_000 < count; part += 1) {
      const numRuns = Math.min(1_000, count - part * 1_000);
      const sample = fc.sample(inputs, { numRuns, seed: seed + part });
      for (let from = 0; from < sample.length; from += 20)
        await Promise.all(sample.slice(from, from + 20).map(act));
    }
    return count;
  };
}

/** Jobs that could run now, and claims that are overdue. */
async function stuckRows(pool: pg.Pool): Promise<readonly unknown[]> {
  const { rows } = await pool.query(
    `select q.*, q.seq::text from venturi_queue q join venturi_kinds k on k.id = q.kind_id and k.name = any ($1)
     where (q.claimed_by is null and q.run_count < 2147483647 and q.visible_at <= now())
       or (q.claimed_by is not null and coalesce(q.lease_expires_at, 'epoch') <= now())`,
    [kinds],
  );
  return rows;
}
