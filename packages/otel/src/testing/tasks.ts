import { Backoff, defineTask } from "@venturi/core";
import * as v from "valibot";

const payload = v.object({ n: v.number() });
const backoff = new Backoff({ base: 1, cap: 1 });

/** Tasks that a producer process and worker processes share. */
export const Flaky = defineTask({ kind: "flaky", payload, backoff });
export const Pausing = defineTask({ kind: "pausing", payload, backoff });
export const Dying = defineTask({ kind: "dying", payload });
export const Hanging = defineTask({ kind: "hanging", payload, backoff });
export const Merged = defineTask({ kind: "merged", payload, dedupKey: ({ n }) => n % 2 });
export const Follow = defineTask({ kind: "follow", payload });
