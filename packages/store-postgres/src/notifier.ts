import { type Logger, readDatabaseFault, type Subscription, silentLogger } from "@venturi/core";
import type { PgListenClient } from "./pg-like.ts";

export interface NotifierOptions {
  /** Makes a client that has not connected yet. */
  readonly createClient: () => PgListenClient;
  /** The channel, quoted as an identifier. */
  readonly channel: string;
  /** How often the connection is asked whether it lives, in milliseconds. */
  readonly probeMs?: number;
}

const firstDelayMs = 100;
const lastDelayMs = 5_000;
const logWindowMs = 60_000;

/**
 * Listens on the queue's channel over a connection of its own, and wakes on every notification and after every
 * (re)connection. A lost or half-open connection is replaced, with growing delays, until it is closed. The
 * connection never opens a transaction, which would stop the server from clearing its notification queue.
 */
export function subscribe(
  options: NotifierOptions,
  onWake: () => void,
  logger: Logger = silentLogger,
): Subscription {
  const { createClient, channel, probeMs = 5_000 } = options;
  let closed = false;
  let client: PgListenClient | undefined;
  let timer: NodeJS.Timeout | undefined;
  let delayMs = firstDelayMs;
  let loggedAt = Number.NEGATIVE_INFINITY;
  let announce: () => void = () => undefined;
  const listening = new Promise<void>((resolve) => {
    announce = resolve;
  });

  const drop = (lost: PgListenClient, error: unknown) => {
    // Late news of a client that has been replaced already.
    if (client !== lost) return;
    client = undefined;
    clearTimeout(timer);
    // A half-open connection never answers its farewell either.
    lost.end().catch(() => undefined);
    if (closed) return;
    const now = performance.now();
    if (now - loggedAt >= logWindowMs) {
      loggedAt = now;
      const { message } = readDatabaseFault(error);
      logger.warn("the LISTEN connection was lost: polling until it is back", { message });
    }
    timer = setTimeout(connect, delayMs);
    delayMs = Math.min(delayMs * 2, lastDelayMs);
  };

  const connect = () => {
    const fresh = createClient();
    client = fresh;
    fresh.on("error", (error) => drop(fresh, error));
    fresh.on("end", () => drop(fresh, new Error("the connection ended")));
    fresh.on("notification", onWake);
    const open = async () => {
      await fresh.connect();
      await fresh.query({ text: `listen ${channel}` });
    };
    within(open(), probeMs * 2).then(
      () => {
        if (client !== fresh) return;
        if (loggedAt > 0) logger.info("the LISTEN connection is up");
        loggedAt = Number.NEGATIVE_INFINITY;
        delayMs = firstDelayMs;
        announce();
        onWake();
        probe(fresh);
      },
      (error: unknown) => drop(fresh, error),
    );
  };

  const probe = (current: PgListenClient) => {
    timer = setTimeout(() => {
      within(current.query({ text: "select 1" }), probeMs).then(
        () => client === current && probe(current),
        (error: unknown) => drop(current, error),
      );
    }, probeMs);
  };

  connect();
  return {
    listening,
    async close() {
      closed = true;
      clearTimeout(timer);
      const last = client;
      client = undefined;
      announce();
      if (last !== undefined) await within(last.end(), 1_000).catch(() => undefined);
    },
  };
}

/** Rejects when a promise takes longer than it may, without leaving a timer behind. */
function within<T>(promise: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
