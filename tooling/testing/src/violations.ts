import { type Invariant, invariants, type TableNames } from "./invariant-queries.ts";

/** Whatever runs a statement: a pool or a client of `pg`. */
export interface QueryRunner {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

export interface InvariantOptions {
  /** @defaultValue "venturi" */
  readonly prefix?: string;
  /** @defaultValue "public" */
  readonly schema?: string;
  /** Every id that an enqueue returned or was given: none may be lost, none invented. */
  readonly enqueued?: Iterable<string>;
  /** How many connections to the database there may be, the checker's own left out. */
  readonly maxConnections?: number;
}

/** What does not hold, a line for each job concerned (at most ten for each invariant). */
export async function invariantViolations(
  database: QueryRunner,
  options: InvariantOptions = {},
): Promise<string[]> {
  const tables = tableNames(options.schema ?? "public", options.prefix ?? "venturi");
  const violations: string[] = [];
  for (const invariant of invariants)
    violations.push(...(await check(database, invariant, tables)));
  if (options.enqueued) violations.push(...(await checkIds(database, options.enqueued, tables)));
  violations.push(...(await checkConnections(database, options.maxConnections)));
  return violations;
}

async function check(
  database: QueryRunner,
  { statement, sql, looksTwice = false }: Invariant,
  tables: TableNames,
): Promise<string[]> {
  const look = async () => {
    const { rows } = await database.query(`${sql(tables)} limit 10`);
    return rows.map(({ subject, found }) => `${statement}: ${subject} ${found}`);
  };
  const violations = await look();
  if (!looksTwice || violations.length === 0) return violations;
  const again = new Set(await look());
  return violations.filter((violation) => again.has(violation));
}

async function checkIds(
  database: QueryRunner,
  enqueued: Iterable<string>,
  { jobs, journal, ulid }: TableNames,
): Promise<string[]> {
  const { rows } = await database.query(`select ${ulid}(id) as id from ${jobs}
    union select ${ulid}(incoming_id) from ${journal} where incoming_id is not null`);
  const stored = new Set(rows.map(({ id }) => String(id)));
  const expected = new Set(enqueued);
  return [
    ...[...expected].filter((id) => !stored.has(id)).map((id) => `${id} was enqueued and is lost`),
    ...[...stored].filter((id) => !expected.has(id)).map((id) => `${id} was never enqueued`),
  ];
}

async function checkConnections(database: QueryRunner, most = Infinity): Promise<string[]> {
  const { rows } = await database.query(`select pid, application_name, state,
      extract(epoch from clock_timestamp() - state_change)::float8 as seconds
    from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`);
  const idle = rows
    .filter(({ state, seconds }) => String(state).startsWith("idle in tr") && Number(seconds) > 1)
    .map(({ pid, seconds }) => `connection ${pid} has been idle in transaction for ${seconds} s`);
  const excess = rows.length > most ? [`${rows.length} connections, ${most} are allowed`] : [];
  return [...idle, ...excess];
}

function tableNames(schema: string, prefix: string): TableNames {
  const of = (name: string) => `"${schema}"."${prefix}_${name}"`;
  return {
    jobs: of("jobs"),
    queue: of("queue"),
    dead: of("dead"),
    journal: of("journal"),
    ulid: of("ulid"),
    schema,
  };
}
