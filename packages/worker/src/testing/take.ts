import type { JobId } from "@venturi/core";
import type { KindSlots, Slots } from "../slots.ts";

/** A job has been claimed, and its handler goes on. */
export function take(slots: Slots, kind: KindSlots, jobId: JobId): void {
  slots.reserve(kind);
  slots.start();
  slots.goesOn(jobId);
}
