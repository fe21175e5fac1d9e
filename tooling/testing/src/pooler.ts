/** Where the postgres tests go through a pooler, as their set-up tells them and the processes they start. */
export interface Pooled {
  /** Where the pooler listens, as `host:port`. */
  readonly address: string;
  /** The server behind it, by which one connects past it. */
  readonly serverUrl: string;
  /** Whether workers listen past it, or poll. */
  readonly listens: boolean;
}

const variable = "VENTURI_POOLED";

/** From here on, in this process and those it starts, databases are reached through it. */
export function goThroughPooler(pooled: Pooled): void {
  process.env[variable] = JSON.stringify(pooled);
}

/** What the tests go through, if anything. */
export function pooled(): Pooled | undefined {
  const told = process.env[variable];
  return told === undefined ? undefined : (JSON.parse(told) as Pooled);
}

/** The same database through the pooler, if there is one. */
export function throughPooler(url: string): string {
  const pooler = pooled();
  if (pooler === undefined) return url;
  const changed = new URL(url);
  changed.host = pooler.address;
  changed.password = "";
  return changed.href;
}

/** The same database past the pooler, if the connection string leads through it, or to a proxy before it. */
export function pastPooler(url: string): string {
  const pooler = pooled();
  if (pooler === undefined) return url;
  const { host, pathname } = new URL(url);
  const server = new URL(pooler.serverUrl);
  if (host === server.host) return url;
  server.pathname = pathname;
  return server.href;
}

/** What the documentation tells users of a pooler to pass to their store; nothing without one. */
export function pooledStoreOptions(url: string | undefined): {
  readonly preparedStatements?: false;
  readonly listen?: false;
  readonly listenConnectionString?: string;
} {
  if (url === undefined) return {};
  const listenConnectionString = pastPooler(url);
  if (listenConnectionString === url) return {};
  return {
    preparedStatements: false,
    ...(pooled()?.listens ? { listenConnectionString } : { listen: false }),
  };
}

/** The same for a queue over a driver. */
export function pooledQueueOptions(): { readonly preparedStatements?: false } {
  return pooled() === undefined ? {} : { preparedStatements: false };
}

/** The same for a worker: who hears no notifications looks more often. */
export function pooledWorkerOptions(): { readonly pollMax?: number } {
  return pooled()?.listens === false ? { pollMax: 250 } : {};
}
