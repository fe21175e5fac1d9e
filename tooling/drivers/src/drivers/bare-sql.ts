import { type JobId, type NameOptions, toUuid, type UnsentJob } from "@venturi/core";
import type { EnqueueItem, EnqueueOptions } from "@venturi/queue";
import { inTransaction } from "@venturi-tooling/testing";
import pg from "pg";
import { type DriverKind, type Producer, savepoint } from "../driver.ts";
import { surviveLosses } from "../survive-losses.ts";

/** The functions called by hand, as any language can. */
export const bareSqlDriver: DriverKind = {
  name: "bare SQL",
  isBare: true,
  connect(connectionString) {
    const pool = new pg.Pool({ connectionString, max: 4 });
    surviveLosses(pool);
    return {
      producer: bareProducer(pool, {}, true),
      outside: pool,
      producerOf: (names) => bareProducer(pool, names, true),
      transaction: (work) =>
        inTransaction(pool, (client) => {
          const run = (sql: string) => client.query(sql);
          const turns = takingTurns(client);
          const within = () => bareProducer(turns, {}, false);
          const nested = <T>(inner: (producer: Producer) => Promise<T>) =>
            savepoint(run, () => inner(within()));
          return work({ within, store: null, run, nested });
        }),
      close: () => pool.end(),
    };
  },
};

interface Runner {
  query<Row extends pg.QueryResultRow>(text: string, values: unknown[]): Promise<{ rows: Row[] }>;
}

/** One connection runs one statement after the other. */
function takingTurns(client: Runner): Runner {
  let last: Promise<unknown> = Promise.resolve();
  return {
    query<Row extends pg.QueryResultRow>(text: string, values: unknown[]) {
      const result = last.then(() => client.query<Row>(text, values));
      last = result.catch(() => undefined);
      return result;
    },
  };
}

type Item = { readonly job: UnsentJob } & EnqueueOptions;

function bareProducer(
  runner: Runner,
  { prefix = "venturi", schema = "public" }: NameOptions,
  repeats: boolean,
): Producer {
  const named = (name: string) => `"${schema.replaceAll('"', '""')}".${prefix}_${name}`;

  async function enqueueMany(items: readonly EnqueueItem[]): Promise<JobId[]> {
    for (;;) {
      const jobs = [];
      for (const item of items)
        jobs.push(
          await wireJob(runner, named("merge_candidates_v1"), "job" in item ? item : { job: item }),
        );
      try {
        const { rows } = await runner.query<{ id: JobId }>(
          `select ${named("ulid")}(id::uuid) as id from ${named("enqueue_v1")}($1::jsonb) order by ord`,
          [JSON.stringify(jobs)],
        );
        return rows.map(({ id }) => id);
      } catch (error) {
        // The pending job that a decision was about has changed: decide anew.
        const { code } = error as { readonly code?: unknown };
        if (!repeats || code !== "VT003") throw error;
      }
    }
  }
  return {
    enqueueMany,
    enqueue: async (job, options = {}) => (await enqueueMany([{ job, ...options }]))[0] as JobId,
  };
}

/** A job as the function takes it. */
async function wireJob(
  runner: Runner,
  candidates: string,
  { job, ...options }: Item,
): Promise<object> {
  const { kind, payload, dedupKey, merge } = await job.task.prepare(job.input);
  const { priority, headers, delay, runAt, id } = options;
  const given: Record<string, unknown> = { kind, payload: JSON.parse(payload), priority, headers };
  if (id !== undefined) given["id"] = toUuid(id);
  if (typeof delay === "number") given["delay_ms"] = delay;
  if (runAt instanceof Date) given["run_at"] = runAt;
  if (dedupKey === null) return given;
  given["dedup_key"] = dedupKey;
  if (merge !== "function") return { ...given, merge };
  return { ...given, decision: await decide(runner, candidates, kind, dedupKey, job.input) };
}

/** What the merge function of `Summed` decides. */
async function decide(
  runner: Runner,
  candidates: string,
  kind: string,
  dedupKey: string,
  incoming: unknown,
): Promise<object> {
  const { rows } = await runner.query<{ candidate: string }>(
    `select candidate from ${candidates}($1::jsonb)`,
    [JSON.stringify([{ kind, dedup_key: dedupKey, limit: 1 }])],
  );
  if (rows[0] === undefined) return { action: "insert" };
  const { id, version, run_count, payload } = JSON.parse(rows[0].candidate);
  const { key, n } = incoming as { readonly key: string; readonly n: number };
  const sum = { key, n: payload.n + n };
  return { action: "with", candidate: id, version, run_count, payload: sum };
}
