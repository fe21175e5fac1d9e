import type { Logger } from "@venturi/core";
import type { Row, SqlConnection, SqlSource } from "./database.ts";
import { type PgClientLike, type PgPoolLike, type PgQueryable, plainTypes } from "./pg-like.ts";
import type { Statement } from "./sql/statement.ts";
import { SuspectConnections } from "./suspect-connections.ts";

export interface PgSourceOptions {
  readonly preparedStatements: boolean;
  /** Whether `close` ends the pool. */
  readonly owned: boolean;
  readonly logger: Logger;
}

/** A `pg` pool as a source of statements. */
export function pgSource(
  pool: PgPoolLike,
  { preparedStatements, owned, logger }: PgSourceOptions,
): SqlSource {
  guardPool(pool, logger);
  const suspects = SuspectConnections.of(pool);
  return {
    async run(statement, values) {
      const { name } = statement;
      const options = { preparedStatements, answerMs: suspects.patienceMs(name) };
      try {
        const rows = suspects.isAny
          ? await onClient(await suspects.connect(), (client) =>
              run(client, statement, values, options),
            )
          : await run(pool, statement, values, options);
        suspects.answered(name);
        return rows;
      } catch (error) {
        suspects.learn(name, error);
        throw error;
      }
    },
    async transaction(work) {
      const client = await suspects.connect();
      // A checked-out client whose connection dies tells nobody but itself, and unheard ends the process.
      const onError = () => undefined;
      client.on("error", onError);
      let broken: Error | undefined;
      try {
        return await inTransaction(client, preparedStatements, work);
      } catch (error) {
        suspects.learn("transaction", error);
        // Whatever state the session is in, nobody else should meet it.
        broken = error instanceof Error ? error : new Error("transaction failed");
        throw error;
      } finally {
        client.removeListener("error", onError);
        client.release(broken);
      }
    },
    close: () => (owned ? pool.end() : Promise.resolve()),
  };
}

async function onClient<T>(
  client: PgClientLike,
  work: (client: PgClientLike) => Promise<T>,
): Promise<T> {
  try {
    const result = await work(client);
    client.release();
    return result;
  } catch (error) {
    client.release(true);
    throw error;
  }
}

/** A `pg` client whose transaction somebody else began and will end. */
export function pgTransaction(client: PgQueryable, preparedStatements: boolean): SqlConnection {
  const options = { preparedStatements, answerMs };
  return { run: (statement, values) => run(client, statement, values, options) };
}

async function inTransaction<T>(
  client: PgClientLike,
  preparedStatements: boolean,
  work: (connection: SqlConnection) => Promise<T>,
): Promise<T> {
  const begin = "begin isolation level read committed read write";
  await client.query({ text: begin, values: [], query_timeout: answerMs });
  const result = await work(pgTransaction(client, preparedStatements));
  await client.query({ text: "commit", values: [], query_timeout: commitMs });
  return result;
}

/** How long a prompt statement in a transaction may go unanswered, in milliseconds. */
const answerMs = 8_000;

/** The same for a commit, behind which the work of a migration may lie. */
const commitMs = 60_000;

interface RunOptions {
  readonly preparedStatements: boolean;
  /** How long a prompt statement may go unanswered, in milliseconds. */
  readonly answerMs: number;
}

async function run(
  queryable: PgQueryable,
  { name, text, isPrompt = false }: Statement,
  values: readonly unknown[],
  { preparedStatements, answerMs }: RunOptions,
): Promise<readonly Row[]> {
  const within = isPrompt ? { query_timeout: answerMs } : {};
  const query = { text, values: [...values], types: plainTypes, ...within };
  const result = await queryable.query(preparedStatements ? { name, ...query } : query);
  return result.rows as readonly Row[];
}

const guarded = Symbol.for("venturi.pool-guarded");
const heard = Symbol.for("venturi.clients-heard");

/**
 * Keeps a connection that dies from ending the process, which an error event does that nobody hears. Once a pool.
 *
 * An idle one tells its pool. One that is checked out tells only itself, and may do so before the promise of the
 * check-out has come to whoever awaits it: its listener is added as the pool hands it out, and stays.
 */
function guardPool(pool: PgPoolLike, logger: Logger): void {
  once(pool, guarded, () =>
    pool.on("error", ({ message }) => {
      try {
        logger.warn("an idle database connection was lost", { message });
      } catch {
        // A logger that throws must not do what the event itself was kept from doing.
      }
    }),
  );
  const lender = pool as unknown as {
    on(event: "acquire", listener: (client: PgClientLike) => void): unknown;
  };
  once(pool, heard, () =>
    lender.on("acquire", (client) => once(client, heard, () => client.on("error", ignore))),
  );
}

function once(target: object, mark: symbol, work: () => void): void {
  if (Object.hasOwn(target, mark)) return;
  Object.defineProperty(target, mark, { value: true });
  work();
}

function ignore(): void {
  // Whoever uses the connection hears of it from the statement under way, or the next.
}
