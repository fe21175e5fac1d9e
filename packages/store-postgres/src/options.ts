import {
  checkMembers,
  invalidArgument,
  type Logger,
  type NameOptions,
  readArgument,
  resolveNames,
  silentLogger,
  toLogger,
  type VenturiError,
} from "@venturi/core";
import pg from "pg";
import type { KyselyInstance } from "./kysely-source.ts";
import { createNames, type Names } from "./names.ts";
import type { PgPoolLike } from "./pg-like.ts";
import { perHost } from "./several-hosts.ts";

/** The options of every store, however it is made. */
export interface StoreOptions extends NameOptions {
  /**
   * Whether statements are prepared under names; pass false behind a pooler in transaction mode.
   * @defaultValue true
   */
  readonly preparedStatements?: boolean | undefined;
  /**
   * Whether workers listen for notifications, over one more connection. If not, they poll.
   * @defaultValue true
   */
  readonly listen?: boolean | undefined;
  /**
   * Where to listen, if that is not where statements are sent: a pooler, for example, hides notifications.
   * @defaultValue the pool's own settings; with a Kysely instance: workers do not listen
   */
  readonly listenConnectionString?: string | undefined;
  /**
   * Told of lost connections, and of what an operator should know.
   * @defaultValue a logger that keeps silent
   */
  readonly logger?: Logger | undefined;
}

/** The options of a store with a pool of its own, see `PostgresStore.connect`. */
export interface ConnectOptions extends StoreOptions {
  /**
   * Where the database is, as in `postgres://user:password@host:5432/database`. There may be several hosts, as in
   * `postgres://user:password@one:5432,two:5432/database`: connections go to the one that takes writes.
   */
  readonly connectionString: string;
  /**
   * TLS, exactly as `pg` takes it, for the pool and the LISTEN connection alike.
   * @defaultValue what the connection string says
   */
  readonly ssl?: pg.ClientConfig["ssl"] | undefined;
  /**
   * How many connections the pool has at most. The LISTEN connection comes on top.
   * @defaultValue 10
   */
  readonly maxConnections?: number | undefined;
  /** Ends the waiting for a first answer of the server: `connect` rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The options of a store over the application's own `pg` pool or Kysely instance, which the store never ends. */
export type BorrowOptions = StoreOptions &
  (
    | {
        /** A `pg` pool. It gets one listener for its `error` events, however many stores it is lent to. */
        readonly pool: PgPoolLike;
        readonly db?: undefined;
        readonly ssl?: pg.ClientConfig["ssl"] | undefined;
      }
    | {
        /**
         * A Kysely instance. Listen to the `error` events of the pool behind it yourself: otherwise an idle connection that
         * dies ends the process.
         */
        readonly db: KyselyInstance;
        readonly pool?: undefined;
        readonly ssl?: pg.ClientConfig["ssl"] | undefined;
      }
  );

/** Validated options, with their defaults. */
export interface ResolvedOptions {
  readonly names: Names;
  readonly preparedStatements: boolean;
  readonly listen: boolean;
  readonly listenConnectionString: string | undefined;
  readonly ssl: pg.ClientConfig["ssl"] | undefined;
  readonly logger: Logger;
}

const DEFAULT_STORE_OPTIONS = {
  preparedStatements: true,
  listen: true,
  maxConnections: 10,
  logger: silentLogger,
} as const;

const common = [
  "prefix",
  "schema",
  "preparedStatements",
  "listen",
  "listenConnectionString",
  "ssl",
  "logger",
];

/** Validates the common options; throws `invalid-argument` naming the one that is wrong. */
export function resolveOptions(
  options: StoreOptions & { readonly ssl?: unknown },
  own: readonly string[],
): ResolvedOptions {
  return readArgument("options", () => checkOptions(options, own));
}

function checkOptions(
  options: StoreOptions & { readonly ssl?: unknown },
  own: readonly string[],
): ResolvedOptions {
  if (typeof options !== "object" || options === null) {
    throw invalidArgument("options", "must be an object", `pass { ${own.join(", ")} }`);
  }
  const { query, selectFrom } = options as Record<string, unknown>;
  if (typeof selectFrom === "function") throw notOptions("a Kysely instance", "{ db }");
  if (typeof query === "function") throw notOptions("a pool", "{ pool }");
  const known = [...own, ...common];
  checkMembers("options", options, known, "PostgresStore");
  const { preparedStatements, listen, listenConnectionString, ssl } = options;
  const { logger = DEFAULT_STORE_OPTIONS.logger } = options;
  return {
    names: createNames(resolveNames(options)),
    preparedStatements: flag(
      "preparedStatements",
      preparedStatements,
      DEFAULT_STORE_OPTIONS.preparedStatements,
    ),
    listen: flag("listen", listen, DEFAULT_STORE_OPTIONS.listen),
    listenConnectionString:
      listenConnectionString === undefined
        ? undefined
        : connectionString("listenConnectionString", listenConnectionString),
    ssl: toSsl(ssl),
    logger: toLogger(logger),
  };
}

const ownOfConnect = ["connectionString", "maxConnections", "signal"];

/** What `connect` takes for itself, and the rest, which it has checked; throws as {@link resolveOptions} does. */
export function splitOptions(options: ConnectOptions) {
  if (typeof options === "string") throw notOptions("a string", "{ connectionString }");
  const given = readArgument("options", () => {
    checkMembers("options", options, [...ownOfConnect, ...common], "PostgresStore");
    return { ...options };
  });
  const { connectionString: url, maxConnections: max, signal, ...rest } = given;
  const { ssl } = resolveOptions(rest, ownOfConnect);
  return { url, max, signal, rest, ssl };
}

/** The error for something else that was passed instead of the options. */
function notOptions(given: string, instead: string): VenturiError {
  return invalidArgument("options", `are ${given}`, `pass ${instead}`);
}

/** Checks a connection string; throws `invalid-argument`. It is never shown in an error, since it may hold a password. */
export function connectionString(name: string, value: unknown): string {
  const hint = 'pass it as in "postgres://user:password@host:5432/database"';
  if (typeof value !== "string" || value.trim() === "")
    throw invalidArgument(name, "must be a non-empty string", hint);
  if (!isReadable(value)) {
    const encode = "percent-encode what is special in user and password";
    throw invalidArgument(name, "cannot be read as a connection string", `${hint}; ${encode}`);
  }
  return value;
}

/** Whether `pg` can read a connection string. A client reads it when it is made, long before it connects. */
function isReadable(url: string): boolean {
  try {
    return perHost(url).every((each) => new pg.Client({ connectionString: each }));
  } catch {
    return false;
  }
}

/** Checks how many connections a pool may have; throws `invalid-argument`. */
export function maxConnections(value: unknown): number {
  if (value === undefined) return DEFAULT_STORE_OPTIONS.maxConnections;
  if (Number.isInteger(value) && (value as number) >= 1) return value as number;
  throw invalidArgument(
    "maxConnections",
    "must be a whole number of at least 1",
    "one connection suffices for every operation",
  );
}

/** Checks `ssl`; throws `invalid-argument`. What is in the object is left to `pg` and Node. */
function toSsl(value: unknown): pg.ClientConfig["ssl"] {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  if (value === undefined || typeof value === "boolean" || isObject)
    return value as pg.ClientConfig["ssl"];
  throw invalidArgument("ssl", "must be true, false or an object", "pass what pg takes as ssl");
}

function flag(name: string, value: unknown, fallback: boolean): boolean {
  if (value === undefined) return fallback;
  if (typeof value === "boolean") return value;
  throw invalidArgument(name, "must be true or false", `leave it out for ${fallback}`);
}
