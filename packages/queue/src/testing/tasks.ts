import { defineTask } from "@venturi/core";
import * as v from "valibot";

/** Tasks that the tests of this package enqueue. */
export const SendEmail = defineTask({
  kind: "send_email",
  payload: v.object({ to: v.pipe(v.string(), v.email()), subject: v.optional(v.string(), "Hi") }),
});

export const Count = defineTask({ kind: "count", payload: v.object({ n: v.number() }) });

const keyed = v.object({ key: v.string(), n: v.number() });

export const Kept = defineTask({
  kind: "kept",
  payload: keyed,
  dedupKey: ({ key }) => key,
  merge: "keep",
});

export const Replaced = defineTask({
  kind: "replaced",
  payload: keyed,
  dedupKey: ({ key }) => key,
  priority: ({ n }) => (n > 100 ? "high" : "normal"),
});

export const Independent = defineTask({
  kind: "independent",
  payload: keyed,
  dedupKey: ({ key }) => key,
  merge: "independent",
});
