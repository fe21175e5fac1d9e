import {
  checkMembers,
  invalidArgument,
  type Logger,
  type Names,
  readArgument,
  resolveNames,
  silentLogger,
  toLogger,
} from "@venturi/core";

/** How a {@link Queue} reaches the tables that `migrate` made. */
export interface QueueOptions {
  /**
   * The prefix of the tables, as they were migrated.
   * @defaultValue "venturi"
   */
  readonly prefix?: string | undefined;
  /**
   * The schema of the tables.
   * @defaultValue "public"
   */
  readonly schema?: string | undefined;
  /**
   * Whether `pg` prepares statements under names; pass false behind a pooler in transaction mode.
   * @defaultValue true
   */
  readonly preparedStatements?: boolean | undefined;
  /**
   * Told of connections that die while idle, and of pending jobs that are left out of a merge because the schemas of their
   * task refuse them.
   * @defaultValue a logger that keeps silent
   */
  readonly logger?: Logger | undefined;
}

/** Validated options, with their defaults. */
export interface ResolvedQueueOptions {
  readonly names: Names;
  readonly preparedStatements: boolean;
  readonly logger: Logger;
}

/** What a queue does unless it is told otherwise. */
export const DEFAULT_QUEUE_OPTIONS: ResolvedQueueOptions = Object.freeze({
  names: resolveNames(),
  preparedStatements: true,
  logger: silentLogger,
});

const known = ["prefix", "schema", "preparedStatements", "logger"];

/** Validates every option; throws `invalid-argument` naming the one that is wrong. */
export function resolveQueueOptions(options: QueueOptions = {}): ResolvedQueueOptions {
  return readArgument("options", () => checkOptions(options));
}

function checkOptions(options: QueueOptions): ResolvedQueueOptions {
  checkMembers("options", options, known, "a queue");
  const { preparedStatements = DEFAULT_QUEUE_OPTIONS.preparedStatements } = options;
  if (typeof preparedStatements !== "boolean") {
    throw invalidArgument("preparedStatements", "must be true or false", "leave it out for true");
  }
  const { logger = DEFAULT_QUEUE_OPTIONS.logger } = options;
  return { names: resolveNames(options), preparedStatements, logger: toLogger(logger) };
}
