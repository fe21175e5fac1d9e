import { defineTask, Merge } from "@venturi/core";
import * as v from "valibot";

/** A job that may carry anything. */
export const Anything = defineTask({
  kind: "anything",
  payload: v.object({ value: v.unknown() }),
});

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
});

export const Independent = defineTask({
  kind: "independent",
  payload: keyed,
  dedupKey: ({ key }) => key,
  merge: "independent",
});

/** What is pending holds the sum. */
export const Summed = defineTask({
  kind: "summed",
  payload: keyed,
  dedupKey: ({ key }) => key,
  merge: ({ key, n }, { payload }) => Merge.with({ key, n: payload.n + n }),
});
