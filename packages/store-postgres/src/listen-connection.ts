import type { PgListenClient } from "./pg-like.ts";

export interface ListenConnectionOptions {
  /** Makes a client that has not connected yet. */
  readonly createClient: () => PgListenClient;
  /** The channel, quoted as an identifier. */
  readonly channel: string;
  /**
   * How often the connection is asked whether it lives, and how long it may take to answer, in milliseconds.
   * @defaultValue 5000
   */
  readonly probeMs?: number;
}

export interface ListenEvents {
  /** It listens. */
  readonly onUp: () => void;
  readonly onNotification: (payload: string | undefined) => void;
  /** It is of no use any more; told once, and nothing after it. */
  readonly onLost: (error: unknown) => void;
}

/** One connection that listens. */
export interface ListenConnection {
  /** Ends it, waiting a moment for a proper farewell. Nothing is told any more. */
  end(): Promise<void>;
}

const farewellMs = 1_000;

/**
 * Connects, listens, and asks now and then for a sign of life, since a half-open connection reports nothing. Never
 * opens a transaction, which would stop the server from clearing its notification queue.
 *
 * Throws what `createClient` throws.
 */
export function openListenConnection(
  { createClient, channel, probeMs = 5_000 }: ListenConnectionOptions,
  { onUp, onNotification, onLost }: ListenEvents,
): ListenConnection {
  const client = createClient();
  let over = false;
  let isConnected = false;
  let timer: NodeJS.Timeout | undefined;
  const after = (ms: number, what: () => void) => {
    clearTimeout(timer);
    timer = setTimeout(what, ms);
  };
  const stop = () => {
    over = true;
    clearTimeout(timer);
  };
  const lose = (error: unknown) => {
    if (over) return;
    stop();
    // It may not answer a farewell either, and its socket would keep the process alive.
    client.end().catch(() => undefined);
    destroy(client);
    onLost(error);
  };
  const expectAnswer = (ms: number) =>
    after(ms, () => lose(new Error(`the server did not answer within ${ms} ms`)));
  const probe = () => {
    expectAnswer(probeMs);
    // An empty query is answered like any other, and is no statement that anybody would count or plan.
    client.query({ text: "" }).then(rest, lose);
  };
  const rest = () => {
    if (!over) after(probeMs, probe);
  };

  client.on("error", lose);
  client.on("end", () => lose(new Error("the server ended the connection")));
  client.on("notification", ({ payload }) => {
    if (!over) onNotification(payload);
  });
  expectAnswer(probeMs * 2);
  client
    .connect()
    .then(() => {
      isConnected = true;
      return client.query({ text: `listen ${channel}` });
    })
    .then(() => {
      if (over) return;
      rest();
      onUp();
    }, lose);

  return {
    async end() {
      if (over) return;
      stop();
      let giveUp: NodeJS.Timeout | undefined;
      const patience = new Promise<void>((resolve) => {
        // Nobody has answered yet to whom one could say it.
        giveUp = setTimeout(resolve, isConnected ? farewellMs : 0);
      });
      await Promise.race([client.end().catch(() => undefined), patience]);
      clearTimeout(giveUp);
      destroy(client);
    },
  };
}

function destroy(client: PgListenClient): void {
  client.connection?.stream?.destroy?.();
}
