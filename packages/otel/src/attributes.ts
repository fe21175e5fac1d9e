import type { Attributes } from "@opentelemetry/api";

// The messaging conventions are still in development and not part of the stable package of names.
export const SYSTEM = "messaging.system";
export const DESTINATION = "messaging.destination.name";
const OPERATION_NAME = "messaging.operation.name";
const OPERATION_TYPE = "messaging.operation.type";
export const MESSAGE_ID = "messaging.message.id";
export const MESSAGE_COUNT = "messaging.batch.message_count";
export const CLIENT_ID = "messaging.client.id";
export const ERROR_TYPE = "error.type";

// What they leave to each system.
export const RUN_COUNT = "messaging.venturi.run_count";
export const FAILURE_COUNT = "messaging.venturi.failure_count";
export const PRIORITY = "messaging.venturi.priority";
export const OUTCOME = "messaging.venturi.outcome";
export const MERGED_INTO = "messaging.venturi.merged_into";
export const IN_TRANSACTION = "messaging.venturi.in_transaction";
export const LATENCY = "messaging.venturi.latency";

/** What venturi does, by its own word and by that of the conventions. */
const operations = {
  enqueue: "send",
  claim: "receive",
  run: "process",
  settle: "settle",
} as const;

export type Operation = keyof typeof operations;

/** The attributes of an operation, on spans and metrics alike; the destination is the kind of the jobs. */
export function operationAttributes(operation: Operation, kind: string | null): Attributes {
  return {
    [SYSTEM]: "venturi",
    [OPERATION_NAME]: operation,
    [OPERATION_TYPE]: operations[operation],
    ...(kind === null ? {} : { [DESTINATION]: kind }),
  };
}

/** The kind that all of some jobs have; null where they differ. */
export function commonKind(jobs: readonly { readonly kind: string }[]): string | null {
  const kind = jobs[0]?.kind ?? null;
  return jobs.every((job) => job.kind === kind) ? kind : null;
}
