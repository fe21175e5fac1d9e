import { ROOT_CONTEXT, SpanKind, type Tracer } from "@opentelemetry/api";
import type { ClaimEvent } from "@venturi/core";
import { CLIENT_ID, commonKind, MESSAGE_COUNT, operationAttributes } from "./attributes.ts";
import { linksTo } from "./links.ts";

/** A span for every claim that brought jobs, in a trace of its own, linked to where they were enqueued. */
export function recordClaim(tracer: Tracer, event: ClaimEvent): void {
  if (event.event !== "claimed") return;
  const { jobs, worker, durationMs } = event;
  const kind = commonKind(jobs);
  const endTime = Date.now();
  const span = tracer.startSpan(
    kind === null ? "claim" : `claim ${kind}`,
    {
      kind: SpanKind.CLIENT,
      startTime: endTime - durationMs,
      attributes: {
        ...operationAttributes("claim", kind),
        [CLIENT_ID]: worker,
        [MESSAGE_COUNT]: jobs.length,
      },
      links: linksTo(jobs),
    },
    ROOT_CONTEXT,
  );
  span.end(endTime);
}
