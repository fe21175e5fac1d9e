import { clearImmediate, setImmediate } from "node:timers";

/** Ends a timer that has not fired yet; does nothing afterwards. */
export type CancelTimer = () => void;

/** What the services know of time. Instants are monotonic: the wall clock may jump, a wait may not. */
export interface Clock {
  /** Milliseconds since some fixed moment. */
  now(): number;
  /** Calls back once, after at least `ms` milliseconds; never for `Infinity`. */
  after(ms: number, callback: () => void): CancelTimer;
  /** Calls back in the next iteration of the event loop, after everything that is ready now. */
  soon(callback: () => void): CancelTimer;
}

/** The longest delay that `setTimeout` can count; a longer one would fire at once. */
const longestTimeout = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => performance.now(),
  after(ms, callback) {
    if (ms === Number.POSITIVE_INFINITY) return () => undefined;
    let timer: NodeJS.Timeout;
    const arm = (left: number): void => {
      const step = Math.min(left, longestTimeout);
      timer = setTimeout(() => (left > step ? arm(left - step) : callback()), step);
    };
    arm(Math.max(0, Math.ceil(ms)));
    return () => clearTimeout(timer);
  },
  soon(callback) {
    const immediate = setImmediate(call);
    const cancelFake = fakeImmediate(call);
    const cancel = (): void => {
      clearImmediate(immediate);
      cancelFake?.();
    };
    function call(): void {
      cancel();
      callback();
    }
    return cancel;
  },
};

/**
 * An immediate of the fake timers that an application's tests may have put in the place of the real ones. Nobody may
 * ever advance them for what is no matter of time, so that the real one has to come as well; but where somebody does,
 * this one comes in the order of the timers that are advanced.
 */
function fakeImmediate(callback: () => void): CancelTimer | undefined {
  // Ended by the timers that began it: the real ones may be back by then.
  const { setImmediate: set, clearImmediate: clear } = globalThis;
  if (set === setImmediate) return undefined;
  const immediate = set(callback);
  return () => clear(immediate);
}

/**
 * Waits for a promise, but not longer than `ms` milliseconds; says whether it settled in time. A rejection counts as
 * settled: whoever made the promise reports it.
 */
export function settledWithin(
  clock: Clock,
  ms: number,
  promise: Promise<unknown>,
): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.after(ms, () => resolve(false));
    const settle = (): void => {
      cancel();
      resolve(true);
    };
    promise.then(settle, settle);
  });
}
