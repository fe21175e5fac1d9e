import {
  type JobId,
  type Logger,
  readDatabaseFault,
  type Subscription,
  silentLogger,
} from "@venturi/core";
import { readHint } from "./hint.ts";
import {
  type ListenConnection,
  type ListenConnectionOptions,
  openListenConnection,
} from "./listen-connection.ts";

export interface NotifierOptions extends ListenConnectionOptions {
  /**
   * The wait before the first attempt to connect again, in milliseconds; each further one is twice as long.
   * @defaultValue 100
   */
  readonly firstDelayMs?: number;
  /**
   * The longest of these waits. A connection that has lasted this long starts anew with the shortest.
   * @defaultValue 5000
   */
  readonly lastDelayMs?: number;
  /**
   * How long one message about lost connections stands for all, in milliseconds.
   * @defaultValue 60000
   */
  readonly logWindowMs?: number;
}

/**
 * Listens on the queue's channel over a connection of its own, and wakes on every notification and after every
 * (re)connection. A lost connection is replaced, with growing delays, until the subscription is closed.
 */
export function subscribe(
  options: NotifierOptions,
  onWake: (hint?: JobId) => void,
  logger: Logger = silentLogger,
): Subscription {
  const { firstDelayMs = 100, lastDelayMs = 5_000, logWindowMs = 60_000 } = options;
  let closed = false;
  let connection: ListenConnection | undefined;
  let timer: NodeJS.Timeout | undefined;
  let delayMs = firstDelayMs;
  let upAt: number | undefined;
  let loggedAt = Number.NEGATIVE_INFINITY;
  /** Whether an operator was told of a loss, and not yet that it is over. */
  let isLossKnown = false;
  let announce: () => void = () => undefined;
  const listening = new Promise<void>((resolve) => {
    announce = resolve;
  });

  const onUp = () => {
    upAt = performance.now();
    if (isLossKnown) logger.info("the LISTEN connection is up");
    isLossKnown = false;
    announce();
    onWake();
  };

  const onNotification = (payload: string | undefined) => onWake(readHint(payload));

  const onLost = (error: unknown) => {
    connection = undefined;
    if (closed) return;
    const now = performance.now();
    if (now - loggedAt >= logWindowMs) {
      loggedAt = now;
      isLossKnown = true;
      const { message } = readDatabaseFault(error);
      logger.warn("no LISTEN connection: polling until it is up", { message });
    }
    if (upAt !== undefined && now - upAt >= lastDelayMs) delayMs = firstDelayMs;
    upAt = undefined;
    // Spread out: all workers lose a restarted server at the same moment.
    timer = setTimeout(connect, delayMs * (0.5 + Math.random() / 2));
    delayMs = Math.min(delayMs * 2, lastDelayMs);
  };

  const connect = () => {
    try {
      connection = openListenConnection(options, { onUp, onNotification, onLost });
    } catch (error) {
      onLost(error);
    }
  };

  connect();
  return {
    listening,
    async close() {
      closed = true;
      clearTimeout(timer);
      announce();
      await connection?.end();
    },
  };
}
