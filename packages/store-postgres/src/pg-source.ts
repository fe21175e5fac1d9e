import type { Logger } from "@venturi/core";
import type { Row, SqlConnection, SqlSource } from "./database.ts";
import { type PgClientLike, type PgPoolLike, type PgQueryable, plainTypes } from "./pg-like.ts";
import type { Statement } from "./sql/statement.ts";
import { firstPatienceMs, SuspectConnections } from "./suspect-connections.ts";

/** A `pg` pool as a source of statements. */
export function pgSource(
  pool: PgPoolLike,
  { preparedStatements, owned, logger }: PgSourceOptions,
): SqlSource {
  guardPool(pool, logger);
  const suspects = SuspectConnections.of(pool);
  /** One statement, of whose answer the suspects hear. */
  const observed = async (
    { name }: Statement,
    send: (options: RunOptions) => Promise<readonly Row[]>,
  ): Promise<readonly Row[]> => {
    try {
      const rows = await send({ preparedStatements, answerMs: suspects.patienceMs(name) });
      suspects.answered(name);
      return rows;
    } catch (error) {
      suspects.learn(name, error);
      throw error;
    }
  };
  return {
    run: (statement, values) =>
      observed(statement, async (options) => {
        if (!suspects.isAny) return run(pool, statement, values, options);
        return onClient(await suspects.connect(), (client) =>
          run(client, statement, values, options),
        );
      }),
    async transaction(work) {
      const client = await suspects.connect();
      const connection: SqlConnection = {
        run: (statement, values) =>
          observed(statement, (options) => run(client, statement, values, options)),
      };
      // A checked-out client whose connection dies tells nobody but itself, and unheard ends the process.
      const onError = () => undefined;
      client.on("error", onError);
      let broken: Error | undefined;
      try {
        await observed(begin, ({ answerMs }) => run(client, begin, [], { answerMs }));
        const result = await work(connection);
        await observed(commit, () => run(client, commit, [], { answerMs: commitMs }));
        return result;
      } catch (error) {
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

export interface PgSourceOptions {
  readonly preparedStatements: boolean;
  /** Whether `close` ends the pool. */
  readonly owned: boolean;
  readonly logger: Logger;
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
  return { run: (statement, values) => run(client, statement, values, { preparedStatements }) };
}

const begin: Statement = {
  name: "venturi_begin",
  text: "begin isolation level read committed read write",
  isPrompt: true,
};

const commit: Statement = { name: "venturi_commit", text: "commit", isPrompt: true };

/** How long a commit may go unanswered, in milliseconds: the work of a migration may lie behind it. */
const commitMs = 60_000;

interface RunOptions {
  /** @defaultValue false */
  readonly preparedStatements?: boolean | undefined;
  /**
   * How long a prompt statement may go unanswered, in milliseconds.
   * @defaultValue 8,000
   */
  readonly answerMs?: number | undefined;
}

async function run(
  queryable: PgQueryable,
  { name, text, isPrompt = false }: Statement,
  values: readonly unknown[],
  { preparedStatements = false, answerMs = firstPatienceMs }: RunOptions,
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
