/** The version of the ports. A store works only with callers of the same version. */
export const PORT_VERSION = 1;

/** What a store can do beyond the required verbs. Callers read it instead of guessing. */
export interface StoreCapabilities {
  /** Whether producers may enqueue inside a caller's transaction (`within(tx)`). */
  readonly transactions: boolean;
  /** Whether the store is also a {@link Notifier}. Without it workers poll. */
  readonly notifications: boolean;
  /** The size of the pool that the store shares with the application; absent: it has a pool of its own, or cannot tell. */
  readonly sharedConnections?: number;
}

/** What every port says of itself. */
export interface Port {
  readonly portVersion: typeof PORT_VERSION;
  readonly capabilities: StoreCapabilities;
}

/** What every request may carry: a signal with which its caller stops waiting for the answer. */
export interface Signalled {
  /**
   * Ends the waiting: the call rejects with the signal's reason as soon as the signal aborts. If it has aborted already,
   * the call begins nothing. Nothing is undone: what has been sent may still be carried out.
   */
  readonly signal?: AbortSignal | undefined;
}
