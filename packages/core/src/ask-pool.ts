/** Somebody in a pool's line, as `pg` keeps it. */
interface Waiter {
  callback(error: Error): void;
}

const asked = Symbol.for("venturi.pool-asked");

/** What a pool of `pg` has. */
interface Pool {
  readonly ending?: boolean;
  readonly _pendingQueue?: readonly Waiter[];
  /** Those in line for whom venturi asked, through whichever copy of it. */
  [asked]?: WeakSet<Waiter>;
}

/**
 * Asks a pool of `pg` for something that takes a connection of it: `ask` does so at once. Where the pool is ended while
 * that waits in line, it fails as whatever is asked of an ended pool does: a pool answers nobody who waits by then, and
 * the wait would last for ever. What has a connection, or is being made one, is carried out.
 *
 * Anything but a pool of `pg` is asked all the same.
 */
export function askPool<T>(pool: object, ask: () => T): T {
  const { _pendingQueue: line } = pool as Pool;
  if (line === undefined) return ask();
  const ours = (pool as Pool)[asked] ?? watchEnd(pool, line);
  const before = line.length;
  const answer = ask();
  const last = line.at(-1);
  if (last !== undefined && line.length > before) ours.add(last);
  return answer;
}

/** A pool tells nobody that its end has begun, but notes it. One that lets nothing be added is left as it is. */
function watchEnd(pool: Pool, line: readonly Waiter[]): WeakSet<Waiter> {
  const ours = new WeakSet<Waiter>();
  let { ending = false } = pool;
  Reflect.defineProperty(pool, asked, { value: ours });
  Reflect.defineProperty(pool, "ending", {
    configurable: true,
    enumerable: true,
    get: () => ending,
    set: (value: boolean) => {
      ending = value;
      if (!value) return;
      for (const waiter of line.filter((each) => ours.has(each)))
        waiter.callback(new Error("Cannot use a pool after calling end on the pool"));
    },
  });
  return ours;
}
