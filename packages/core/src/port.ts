/** Which shape of the ports this is; stores and callers of one version belong together. */
export const PORT_VERSION = 1;

/** What an adapter can do beyond the required verbs; callers read it instead of guessing. */
export interface StoreCapabilities {
  /** Whether producers may enqueue inside a caller's transaction (`within(tx)`). */
  readonly transactions: boolean;
  /** Whether the store is also a {@link Notifier}. Without it workers poll. */
  readonly notifications: boolean;
  /** How many connections there are where the store shares them with the application; absent: it has its own, or cannot tell. */
  readonly sharedConnections?: number;
}

/** What every port says of itself. */
export interface Port {
  readonly portVersion: typeof PORT_VERSION;
  readonly capabilities: StoreCapabilities;
}

/** What every request may carry: its caller may stop waiting for the answer. */
export interface Signalled {
  /**
   * Ends the waiting: the call rejects with the signal's reason as soon as it aborts, and begins nothing where it has
   * aborted already. It undoes nothing: what was sent may still be carried out.
   */
  readonly signal?: AbortSignal | undefined;
}
