import type { Logger } from "./logger.ts";

/** What `pg` reports a lost connection on: a pool, or a client. */
interface Emitter {
  on?(event: string, listener: (argument: unknown) => void): unknown;
}

/** Shared by all that guard a connection, whichever copy of this code they have, so that it gets one listener. */
const guarded = Symbol.for("venturi.pool-guarded");
const heard = Symbol.for("venturi.clients-heard");

/**
 * Keeps a lost connection from ending the process: `pg` reports one that dies while it idles as an `error` event of its
 * pool, or of a client by itself, which ends the process if nobody listens. The listener stays.
 */
export function guardConnection(connection: object, logger: Logger): void {
  listenOnce(connection, guarded, "error", (error) => {
    // Not the error itself: pg hangs the client, and with it the connection's parameters, on it.
    const message = error instanceof Error ? error.message : String(error);
    logger.warn("an idle database connection was lost", { message });
  });
}

/** Hears every client that a pool lends, as it hands it out: one may die before whoever took it out has got it. */
export function hearClients(pool: object): void {
  listenOnce(pool, heard, "acquire", (client) => hearClient(client as object));
}

/**
 * Keeps a client that dies between two statements from ending the process: it emits `error` on itself alone. Nothing is
 * logged, since the next statement rejects. The listener stays.
 */
export function hearClient(client: object): void {
  listenOnce(client, heard, "error", () => undefined);
}

function listenOnce(
  target: object,
  mark: symbol,
  event: string,
  listener: (argument: unknown) => void,
): void {
  const emitter = target as Emitter;
  if (typeof emitter.on !== "function" || Object.hasOwn(target, mark)) return;
  Reflect.defineProperty(target, mark, { value: true });
  emitter.on(event, listener);
}
