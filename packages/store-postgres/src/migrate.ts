import { createHash } from "node:crypto";
import { isVenturiError, readDatabaseFault, VenturiError } from "@venturi/core";
import type { Database, SqlConnection } from "./database.ts";
import { migrations } from "./migrations/index.ts";
import type { Migration } from "./migrations/migration.ts";
import { createNames, type Names } from "./names.ts";
import type { Statement } from "./sql/statement.ts";

/** How long a step waits for locks that others hold. */
export interface LockPatience {
  /** Of one attempt, in milliseconds; short, since a waiting DDL statement holds up everybody behind it. */
  readonly lockTimeoutMs: number;
  readonly attempts: number;
}

const DEFAULT_PATIENCE: LockPatience = { lockTimeoutMs: 5_000, attempts: 12 };

/**
 * Brings the tables and functions of one queue up to this code's version; safe from many processes at once.
 *
 * Each step and its history row are one transaction, so that an interrupted one leaves nothing behind. The lock is
 * the transaction's own: it cannot leak through a pooler or outlive a killed process. A database that is up to date
 * is only read, so that processes without DDL rights may call this too; one that is newer is left alone.
 */
export async function migrate(
  database: Database,
  names: Names,
  steps: readonly Migration[] = migrations,
  patience: LockPatience = DEFAULT_PATIENCE,
): Promise<void> {
  const pending = await findPending(database, names, steps);
  for (const step of pending) await apply(database, names, step, patience);
}

async function findPending(
  database: Pick<Database, "run"> | SqlConnection,
  names: Names,
  steps: readonly Migration[],
): Promise<readonly Migration[]> {
  const doing = "read the migration history";
  const [table] = await database.run(
    plain("select to_regclass($1::text)::text as name"),
    [names.of("migrations")],
    doing,
  );
  if (table?.["name"] == null) return steps;
  const rows = await database.run(
    plain(`select version, checksum from ${names.of("migrations")}`),
    [],
    doing,
  );
  const applied = new Map(rows.map((row) => [row["version"], row["checksum"]]));
  return steps.filter((step) => {
    if (!applied.has(step.version)) return true;
    check(step, applied.get(step.version));
    return false;
  });
}

async function apply(
  database: Database,
  names: Names,
  step: Migration,
  patience: LockPatience,
): Promise<void> {
  const doing = `apply migration ${step.version} (${step.name}) for prefix "${names.prefix}"`;
  for (let attempt = 1; ; attempt += 1) {
    try {
      await database.transaction(
        (connection) => applyOnce(connection, names, step, patience.lockTimeoutMs),
        doing,
      );
      return;
    } catch (error) {
      if (isVenturiError(error) && error.code === "migration") throw error;
      // Somebody else's long transaction, or another process that was faster.
      const { sqlState } = readDatabaseFault(error);
      const passes = ["55P03", "40P01", "40001"].includes(sqlState ?? "");
      if (!passes || attempt >= patience.attempts) throw failure(error, doing, patience);
      if ((await findPending(database, names, [step])).length === 0) return;
    }
  }
}

function failure(
  error: unknown,
  doing: string,
  { attempts, lockTimeoutMs }: LockPatience,
): VenturiError {
  const cause = isVenturiError(error) ? error.cause : error;
  const { sqlState, isRetryable, message } = readDatabaseFault(cause);
  const why =
    sqlState === "55P03"
      ? `waited ${attempts} times ${lockTimeoutMs} ms for a lock (advisory lock ${lockKey}, or a table in use); end the transaction that holds it and migrate again`
      : `${message}; a step is applied as a whole or not at all, so migrate again once this is mended`;
  return new VenturiError("migration", `could not ${doing}: ${why}`, {
    cause,
    sqlState: sqlState ?? undefined,
    isRetryable,
  });
}

async function applyOnce(
  connection: SqlConnection,
  names: Names,
  step: Migration,
  lockTimeoutMs: number,
): Promise<void> {
  const run = (text: string, values: readonly unknown[] = []) =>
    connection.run(plain(text), values);
  const [database] = await run(settings(lockTimeoutMs));
  checkEncoding(database?.["encoding"]);
  await run(`select pg_advisory_xact_lock(${lockKey})`);
  // From a table, and before the rest: until it locks one, a session need not notice what was made while it waited.
  const [schema] = await run("select nspname as name from pg_namespace where nspname = $1::text", [
    names.schema,
  ]);
  // Another process may have applied it meanwhile.
  if ((await findPending(connection, names, [step])).length === 0) return;
  // Asked for first: "if not exists" would want the right to create it all the same.
  if (schema === undefined) await run(`create schema ${names.quotedSchema}`);
  // Their history begins with the first of them.
  if (step.version === 1) {
    await run(`create table ${names.of("migrations")} (
      version integer constraint ${names.local("migrations_pkey")} primary key,
      name text not null,
      checksum text not null,
      applied_at timestamptz not null default statement_timestamp()
    )`);
  }
  for (const text of step.statements(names)) await run(text);
  await run(
    `insert into ${names.of("migrations")} (version, name, checksum) values ($1::int4, $2::text, $3::text)`,
    [step.version, step.name, checksum(step)],
  );
}

/**
 * How long locks are waited for is said here, and nothing else bounds a step: sessions may be set to end what takes
 * longer than an everyday statement. What `transaction_timeout` is, servers before 17 do not know.
 */
function settings(lockTimeoutMs: number): string {
  return `select set_config(name, case name when 'lock_timeout' then '${lockTimeoutMs}' else '0' end, true),
    current_setting('server_encoding') as encoding
    from pg_settings where name in ('lock_timeout', 'statement_timeout', 'transaction_timeout')`;
}

/** In any other encoding texts and keys are not what applications mean by them, or cannot be stored at all. */
function checkEncoding(found: unknown): void {
  if (found === "UTF8") return;
  throw new VenturiError(
    "migration",
    `the encoding of this database is ${found}, and a queue needs UTF8: migrate one that was made with encoding 'UTF8' template template0`,
  );
}

/** One lock for all queues of a database: migrations are rare, and two of them may create the same schema. */
const lockKey = "hashtext('venturi:migrate'), 0";

function check(step: Migration, found: unknown): void {
  if (found === checksum(step)) return;
  throw new VenturiError(
    "migration",
    `migration ${step.version} (${step.name}) was applied in another form than this code holds; use the version of venturi that made this database, or a fresh prefix`,
  );
}

/** Of the statements under fixed names, so that every prefix has the same. */
function checksum(step: Migration): string {
  const canonical = createNames({ prefix: "venturi", schema: "public" });
  return createHash("sha256").update(step.statements(canonical).join(";\n")).digest("hex");
}

function plain(text: string): Statement {
  return { name: "", text };
}
