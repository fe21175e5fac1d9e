import { askPool } from "@venturi/core";
import type { PgClientLike, PgPoolLike } from "./pg-like.ts";

/**
 * Settles as a promise does, or rejects with `error` if that takes longer than `ms` milliseconds. A process that stood
 * still meanwhile first reads what has arrived.
 */
export function within<T>(ms: number, promise: Promise<T>, error: Error): Promise<T> {
  return new Promise((resolve, reject) => {
    let last: NodeJS.Immediate | undefined;
    const timer = setTimeout(() => {
      last = setImmediate(() => reject(error));
    }, ms);
    const settled = (): void => {
      clearTimeout(timer);
      clearImmediate(last);
    };
    promise.finally(settled).then(resolve, reject);
  });
}

/** A client of a pool while it connects, by the shape that `pg` gives it. */
interface Making {
  readonly connection?: { readonly stream?: { destroy?(): unknown } };
}

/** How long to wait for a connection, in milliseconds. */
export interface ConnectPatience {
  /** While it is being made. */
  readonly makingMs: number;
  /** The same while others use the whole pool: whoever gave up would queue again. */
  readonly waitingMs: number;
}

/**
 * Takes a connection out of a pool, or gives up with an error. A pool by itself waits for ever, even for a connection that
 * the network forgot while it was being made, which keeps its place in the pool for as long. So a connection that was
 * being made for this call is ended. One that comes too late goes back to the pool.
 */
export async function connectWithin(
  pool: PgPoolLike,
  { makingMs, waitingMs }: ConnectPatience,
): Promise<PgClientLike> {
  const making = () => (pool as { readonly _clients?: readonly Making[] })._clients ?? [];
  const before = making().length;
  const lent = askPool(pool, () => pool.connect());
  const after = making();
  const made = after.length > before ? after.at(-1) : undefined;
  const tooLate = new Error("timeout exceeded when trying to connect");
  try {
    return await within(made === undefined ? waitingMs : makingMs, lent, tooLate);
  } catch (error) {
    if (error !== tooLate) throw error;
    lent.then(
      (client) => client.release(),
      () => undefined,
    );
    made?.connection?.stream?.destroy?.();
    throw error;
  }
}
