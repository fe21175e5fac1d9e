import { askPool } from "@venturi/core";
import type { PgClientLike, PgPoolLike } from "./pg-like.ts";

/**
 * What a promise settles with, or a rejection with the error where that takes longer. A process that stood still
 * meanwhile reads what has arrived before it gives up.
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
  /** While others use all that the pool may have: whoever asked anew would have to wait behind the rest. */
  readonly waitingMs: number;
}

/**
 * Takes a connection out of a pool, or gives up. A pool waits for ever unless it is told otherwise, for a connection
 * that a network forgot while it was being made too, which keeps its place in the pool for as long: it is ended, where
 * it was made for this. One that comes later goes back.
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
