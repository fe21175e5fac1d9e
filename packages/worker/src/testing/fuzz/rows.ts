import fc from "fast-check";
import { json, text } from "./values.ts";

/** A statement that somebody types. */
export interface RowWrite {
  readonly sql: string;
  readonly values: readonly unknown[];
}

const int = fc.oneof(
  fc.constantFrom("0", "1", "-1", "2147483647", "-2147483648", "999"),
  fc.integer().map(String),
);
const bigint = fc.oneof(
  int,
  fc.constantFrom("9223372036854775807", "-8999999999999999999", "9007199254740993"),
);
const float = fc.constantFrom("0", "-1", "1", "NaN", "Infinity", "-Infinity", "1e300", "-1e300");
/** Of what is looked at again: nothing later than the test, so that what waits is done when it ends. */
const instant = fc.constantFrom("-infinity", "now", "epoch", "4000-01-01 BC", "2020-02-30 BC");
const anyInstant = fc.oneof(instant, fc.constantFrom("infinity", "294276-12-31", "9999-12-31"));
const clean = text.map((value) => value.replace(/[\0\p{Surrogate}]/gu, ""));
const jsonb = json.map((value) => JSON.stringify(value));
const boolean = fc.constantFrom("true", "false");
const kindId = fc.constantFrom("1", "2", "3", "0", "-1", "2147483647");
const worker = fc.constantFrom("1", "2", "998", "-1", "2147483647");

type Columns = Readonly<Record<string, fc.Arbitrary<unknown>>>;

/** What each table's columns may be given. Claims are those of workers that are not there. */
const tables: Readonly<Record<string, Columns>> = {
  jobs: {
    created_at: anyInstant,
    priority: fc.constantFrom("0", "1", "2", "7", "-7", "32767"),
    dedup_key: fc.option(clean),
    payload: jsonb,
    headers: fc.option(jsonb),
    version: fc.option(int),
  },
  queue: {
    run_count: int,
    failure_count: int,
    seq: bigint,
    visible_at: anyInstant,
    kind_id: kindId,
    version: int,
    priority: fc.constantFrom("0", "1", "2", "3"),
    scheduled: boolean,
    lease_ms: fc.option(float),
    dedup_key: fc.option(clean),
    carry: fc.option(jsonb),
    backstop: fc.option(int),
    expires_at: fc.option(anyInstant),
    cancel_requested: fc.option(boolean),
  },
  workers: {
    name: clean,
    started_at: anyInstant,
    beat_at: anyInstant,
    poll_max_ms: float,
    worker_timeout_ms: float,
    shortest_lease_ms: float,
    code_version: int,
    stopping_at: fc.option(anyInstant),
    info: fc.option(jsonb),
  },
  dead: { finished_at: anyInstant, run_count: int, failure_count: int, version: int, seq: bigint },
  journal: {
    recorded_at: anyInstant,
    run_no: int,
    outcome: fc.constantFrom("c", "z", "d"),
    note: clean,
  },
  keys: { n: bigint },
};

/** Changes a few rows that are there. */
const updates: fc.Arbitrary<RowWrite> = fc
  .constantFrom("jobs", "queue", "dead", "journal", "keys")
  .chain((table) =>
    fc.record(tables[table] as Columns, { requiredKeys: [] }).map((columns) => {
      const names = Object.keys(columns);
      const set = names.map((name, n) => `${name} = $${n + 1}`).join(", ");
      const held = table === "queue" ? " where claimed_by is null" : "";
      return {
        sql:
          names.length === 0
            ? "select 1"
            : `update venturi_${table} set ${set} where ctid = any (array(select ctid from venturi_${table}${held} limit 2))`,
        values: Object.values(columns),
      };
    }),
  );

/** A row for a job that never was. */
const inserts: fc.Arbitrary<RowWrite> = fc
  .record({
    run: int,
    seq: bigint,
    at: instant,
    kind: kindId,
    carry: jsonb,
    holder: fc.option(worker),
  })
  .map(({ run, seq, at, kind, carry, holder }) => ({
    sql: `insert into venturi_queue (job_id, run_count, seq, visible_at, kind_id, priority, carry, claimed_by, lease_expires_at)
      values (gen_random_uuid(), $1, $2, $3, $4, 1, $5, $6, case when $6::int is not null then now() end)`,
    values: [run, seq, at, kind, carry, holder],
  }));

/** Rows of workers that are nobody, and the deletion of bodies. */
const others: fc.Arbitrary<RowWrite> = fc.oneof(
  fc.record(tables["workers"] as Columns).map((columns) => ({
    sql: `insert into venturi_workers (id, kinds, ${Object.keys(columns).join(", ")})
      values (998, array[null, ''], ${Object.keys(columns)
        .map((_, n) => `$${n + 1}`)
        .join(", ")})
      on conflict (id) do update set ${Object.keys(columns)
        .map((name) => `${name} = excluded.${name}`)
        .join(", ")}`,
    values: Object.values(columns),
  })),
  fc.constant({
    sql: "delete from venturi_jobs where ctid = any (array(select ctid from venturi_jobs limit 1))",
    values: [],
  }),
  fc.constant({
    sql: "update venturi_kinds set paused_at = case when paused_at is null then now() end",
    values: [],
  }),
);

export const rowWrites: fc.Arbitrary<RowWrite> = fc.oneof(
  { weight: 5, arbitrary: updates },
  { weight: 2, arbitrary: inserts },
  { weight: 2, arbitrary: others },
);
