import type { JobId } from "./job-id.ts";
import type { Logger } from "./logger.ts";

/** What a store may implement besides: it tells workers that something has become claimable. */
export interface Notifier {
  /**
   * Calls `onWake` for every notification, with the job's id where it is about a single new job; and after every
   * connection or reconnection, since notifications may have been missed until then. Returns at once; it connects, and
   * reconnects, in the background until the subscription is closed.
   */
  listen(request: ListenRequest): Subscription;
}

export interface ListenRequest {
  readonly onWake: (hint?: JobId) => void;
  readonly logger?: Logger;
  /**
   * How often to check that the connection is alive, in milliseconds: a half-open one reports nothing.
   * @defaultValue 5000
   */
  readonly probeMs?: number;
}

export interface Subscription {
  /** Resolves when the first connection listens; never rejects. */
  readonly listening: Promise<void>;
  close(): Promise<void>;
}
