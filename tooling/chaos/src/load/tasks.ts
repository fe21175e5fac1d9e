import { Backoff, defineTask, Merge } from "@venturi/core";
import * as v from "valibot";

/** Short, so that retries come back while a scenario runs. */
const backoff = new Backoff({ base: 20, cap: 500 });

/** How long a handler takes, in milliseconds. */
const ms = v.number();

/** Completes. */
export const Plain = defineTask({ kind: "plain", payload: v.object({ ms }) });

/** Fails as often as its payload says, then completes. */
export const Failing = defineTask({
  kind: "failing",
  payload: v.object({ ms, failures: v.number() }),
  carry: v.optional(v.object({ failed: v.number() }), { failed: 0 }),
  backoff,
});

/** Fails for good. */
export const Hopeless = defineTask({ kind: "hopeless", payload: v.object({ ms }), backoff });

/** Has a defect in its first run, which also tries to change its carry. */
export const Defective = defineTask({
  kind: "defective",
  payload: v.object({ ms }),
  carry: v.optional(v.object({ changes: v.number() }), { changes: 0 }),
  backoff,
});

/** Pauses as often as its payload says, then completes. */
export const Pausing = defineTask({
  kind: "pausing",
  payload: v.object({ ms, pauses: v.number() }),
  carry: v.optional(v.object({ paused: v.number() }), { paused: 0 }),
  backoff,
});

/** What is enqueued under a key adds up, until it runs. */
export const Adding = defineTask({
  kind: "adding",
  payload: v.object({ ms, key: v.string(), n: v.number() }),
  dedupKey: ({ key }) => key,
  merge: (incoming, { payload }) => Merge.with({ ...incoming, n: incoming.n + payload.n }),
  backoff,
});

/** What is enqueued under a key takes the place of what waits there. */
export const Replacing = defineTask({
  kind: "replacing",
  payload: v.object({ ms, key: v.string() }),
  dedupKey: ({ key }) => key,
  backoff,
});

/** Only a few of them run at once in a worker. */
export const Capped = defineTask({ kind: "capped", payload: v.object({ ms }), backoff });

/** Takes its time. */
export const Slow = defineTask({
  kind: "slow",
  payload: v.object({ ms }),
  backoff,
});

/** Writes a row and completes its run in one transaction. */
export const Writing = defineTask({
  kind: "writing",
  payload: v.object({ ms }),
  backoff,
});
