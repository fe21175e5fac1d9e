import type { Logger } from "@venturi/core";

/** Shared by all that guard a connection, so that it gets one listener whoever comes first. */
const guarded = Symbol.for("venturi.pool-guarded");

interface Emitter {
  [guarded]?: true;
  on?(event: "error", listener: (error: unknown) => void): unknown;
}

/**
 * Keeps a lost connection from ending the process: `pg` reports an idle connection that dies as an
 * `error` event, which Node turns into an uncaught exception where nobody listens. The listener
 * stays for the connection's or pool's life and is added once, however many queues share it.
 */
export function guardConnection(connection: object, logger: Logger): void {
  const emitter = connection as Emitter;
  if (typeof emitter.on !== "function" || emitter[guarded] === true) return;
  Reflect.defineProperty(connection, guarded, { value: true });
  emitter.on("error", (error) => {
    // Not the error itself: pg hangs the client, and with it the connection's parameters, on it.
    const message = error instanceof Error ? error.message : String(error);
    logger.warn("an idle database connection was lost", { message });
  });
}

const heard = Symbol.for("venturi.clients-heard");

/**
 * Keeps a client that dies between two statements of its owner's transaction from ending the process. It says nothing,
 * since the next statement rejects; it is added once and stays.
 */
export function hearClient(client: object): void {
  const { on } = client as Emitter;
  if (typeof on !== "function" || Object.hasOwn(client, heard)) return;
  Reflect.defineProperty(client, heard, { value: true });
  on.call(client, "error", () => undefined);
}
