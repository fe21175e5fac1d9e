/** What kind of server is wanted. */
export interface PostgresOptions {
  /**
   * Major version of the embedded server or container.
   * @defaultValue 18
   */
  readonly version?: 14 | 18;
  /**
   * Whether commits reach the disk: on for demo and benchmarks, off for tests.
   * @defaultValue true
   */
  readonly durable?: boolean;
  /** Further server settings, such as `shared_preload_libraries`. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A server that can be connected to until it is stopped. */
export interface RunningPostgres extends AsyncDisposable {
  /** Where the server came from. */
  readonly origin: "environment" | "container" | "embedded";
  /** Connection string of a superuser, or of the user that the environment named. */
  readonly url: string;
  /** Stops the server and removes its data; does nothing to a server that the environment named. */
  stop(): Promise<void>;
}

/** Fills in what was left out. */
export function resolveOptions(options: PostgresOptions): Required<PostgresOptions> {
  return {
    version: options.version ?? 18,
    durable: options.durable ?? true,
    settings: options.settings ?? {},
  };
}

/** All server settings, as `postgres -c` takes them. */
export function serverSettings(options: Required<PostgresOptions>): Record<string, string> {
  const throwaway = { fsync: "off", full_page_writes: "off" };
  return {
    max_connections: "200",
    timezone: "UTC",
    lc_messages: "C",
    ...(options.durable ? {} : throwaway),
    ...options.settings,
  };
}
