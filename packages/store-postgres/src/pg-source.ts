import { askPool, guardConnection, hearClient, hearClients, type Logger } from "@venturi/core";
import type { Row, SqlConnection, SqlSource } from "./database.ts";
import { type PgClientLike, type PgPoolLike, type PgQueryable, plainTypes } from "./pg-like.ts";
import type { Statement } from "./sql/statement.ts";
import { firstPatienceMs, SuspectConnections } from "./suspect-connections.ts";
import { within } from "./within.ts";

/** A `pg` pool as a source of statements. */
export function pgSource(
  pool: PgPoolLike,
  { preparedStatements, owned, logger }: PgSourceOptions,
): SqlSource {
  guardConnection(pool, logger);
  hearClients(pool);
  const suspects = SuspectConnections.of(pool);
  /** Sends one statement, and tells the suspects how it was answered. */
  const observed = async (
    statement: Statement,
    send: (options: RunOptions) => Promise<readonly Row[]>,
  ): Promise<readonly Row[]> => {
    try {
      const rows = await send({ preparedStatements, answerMs: suspects.patienceMs(statement) });
      suspects.answered(statement);
      return rows;
    } catch (error) {
      suspects.learn(statement, error);
      throw error;
    }
  };
  return {
    run: (statement, values) =>
      observed(statement, async (options) => {
        if (!suspects.isAny && mayLeaveTo(pool, statement))
          return run(pool, statement, values, options);
        return onClient(await suspects.connect(statement), (client) =>
          run(client, statement, values, { ...options, isHeld: true }),
        );
      }),
    async transaction(work, only = {}) {
      const client = await suspects.connect(only);
      const connection: SqlConnection = {
        run: (statement, values) =>
          observed(statement, (options) =>
            run(client, statement, values, { ...options, isHeld: true }),
          ),
      };
      // A checked-out client whose connection dies emits an error, which ends the process if nobody listens.
      const onError = () => undefined;
      client.on("error", onError);
      let broken: Error | undefined;
      try {
        const { patienceMs = firstPatienceMs } = only;
        const first = { ...begin, patienceMs };
        await observed(first, ({ answerMs }) => run(client, begin, [], { answerMs }));
        const result = await work(connection);
        const answerMs = only.isPrompt === true ? patienceMs : commitMs;
        await observed(commit, () => run(client, commit, [], { answerMs }));
        return result;
      } catch (error) {
        // Nobody knows what state the session is in, so its connection is ended.
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

/**
 * Whether the pool may run a statement by itself. Not a prompt one that would have to wait for a connection: a pool waits
 * for ever unless it is told otherwise. Nor one with a patience of its own: its wait is ended here.
 */
function mayLeaveTo(
  { idleCount, waitingCount = 0 }: PgPoolLike,
  { isPrompt = false, patienceMs }: Statement,
): boolean {
  if (!isPrompt || idleCount === undefined) return true;
  return patienceMs === undefined && idleCount > waitingCount;
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

/** A `pg` client whose transaction somebody else began and will end. It may be of a pool that was never lent to a store. */
export function pgTransaction(client: PgQueryable, preparedStatements: boolean): SqlConnection {
  hearClient(client);
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
  /**
   * Whether the connection is ended when the statement fails. Then its wait can be ended here rather than by the driver,
   * whose timeout would fire before it has read an answer that arrived while the process stood still.
   * @defaultValue false
   */
  readonly isHeld?: boolean | undefined;
}

async function run(
  queryable: PgQueryable,
  { name, text, isPrompt = false, patienceMs }: Statement,
  values: readonly unknown[],
  { preparedStatements = false, answerMs = firstPatienceMs, isHeld = false }: RunOptions,
): Promise<readonly Row[]> {
  const isOurs = isHeld && patienceMs !== undefined;
  const limit = isPrompt && !isOurs ? { query_timeout: answerMs } : {};
  const query = { text, values: [...values], types: plainTypes, ...limit };
  const answer = askPool(queryable, () =>
    queryable.query(preparedStatements ? { name, ...query } : query),
  );
  const { rows } = await (isOurs
    ? within(answerMs, answer, new Error("Query read timeout"))
    : answer);
  return rows as readonly Row[];
}
