/**
 * Tells many calls that one signal aborted, with a single listener on it: an application passes the
 * same signal to all its calls, and Node warns of a leak at the eleventh listener.
 */
export class AbortWatch {
  readonly #watched = new WeakMap<AbortSignal, Watched>();

  /** Calls back once when the signal aborts or has aborted, unless the returned function was called before. */
  watch(signal: AbortSignal, onAbort: () => void): () => void {
    if (signal.aborted) {
      onAbort();
      return () => undefined;
    }
    const watched = this.#watched.get(signal) ?? this.#listen(signal);
    watched.callbacks.add(onAbort);
    return () => {
      watched.callbacks.delete(onAbort);
      if (watched.callbacks.size > 0) return;
      signal.removeEventListener("abort", watched.listener);
      this.#watched.delete(signal);
    };
  }

  #listen(signal: AbortSignal): Watched {
    const callbacks = new Set<() => void>();
    const listener = () => {
      for (const onAbort of [...callbacks]) onAbort();
    };
    const watched = { callbacks, listener };
    signal.addEventListener("abort", listener, { once: true });
    this.#watched.set(signal, watched);
    return watched;
  }
}

interface Watched {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}
