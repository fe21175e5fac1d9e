import type { Attributes, Meter } from "@opentelemetry/api";
import type { ClaimEvent, EnqueueEvent, RecoverEvent, RunEvent, SettleEvent } from "@venturi/core";
import {
  commonKind,
  ERROR_TYPE,
  IN_TRANSACTION,
  OUTCOME,
  operationAttributes,
} from "./attributes.ts";
import { listen, type Stop } from "./listen.ts";

/** Of operations, as the messaging conventions advise, in seconds. */
const operationBoundaries = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];
/** Of waiting, which may last for hours, in seconds. */
const latencyBoundaries = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400,
];

/** Counts and measures what the channels tell. */
export function recordMetrics(meter: Meter): readonly Stop[] {
  const instruments = makeInstruments(meter);
  return [
    listen("venturi:enqueue", (event) => recordEnqueue(instruments, event)),
    listen("venturi:claim", (event) => recordClaim(instruments, event)),
    listen("venturi:run", (event) => recordRun(instruments, event)),
    listen("venturi:settle", (event) => recordSettle(instruments, event)),
    listen("venturi:recover", (event) => recordRecovery(instruments, event)),
  ];
}

type Instruments = ReturnType<typeof makeInstruments>;

function makeInstruments(meter: Meter) {
  const counter = (name: string, description: string) =>
    meter.createCounter(`venturi.jobs.${name}`, { description, unit: "{job}" });
  const histogram = (name: string, description: string, explicitBucketBoundaries: number[]) =>
    meter.createHistogram(name, { description, unit: "s", advice: { explicitBucketBoundaries } });
  return {
    enqueued: counter("enqueued", "Jobs stored as new ones."),
    merged: counter("merged", "Jobs merged into pending ones, by how."),
    claimed: counter("claimed", "Claims of jobs."),
    handedBack: counter("handed_back", "Claims undone before their handlers started."),
    settled: counter("settled", "Runs whose end the store has confirmed, by outcome."),
    unsettled: counter("unsettled", "Runs whose end could not be written: their claim was lost."),
    recovered: counter("recovered", "Stale claims recovered, by outcome."),
    operation: histogram(
      "messaging.client.operation.duration",
      "Duration of enqueueing and claiming.",
      operationBoundaries,
    ),
    process: histogram("messaging.process.duration", "Duration of runs.", latencyBoundaries),
    latency: histogram(
      "venturi.job.latency",
      "From when a job is due until its handler is called.",
      latencyBoundaries,
    ),
    settle: histogram(
      "venturi.settle.latency",
      "From the end of a run until the store has confirmed it.",
      operationBoundaries,
    ),
  };
}

function recordEnqueue({ enqueued, merged, operation }: Instruments, event: EnqueueEvent): void {
  if (event.event === "start") return;
  const { jobs, inTransaction } = event.call;
  const transaction: Attributes = inTransaction ? { [IN_TRANSACTION]: true } : {};
  const ofCall = operationAttributes("enqueue", commonKind(jobs));
  if (event.event === "failed") {
    const type = event.error.code ?? event.error.name;
    operation.record(event.durationMs / 1_000, { ...ofCall, [ERROR_TYPE]: type });
    return;
  }
  operation.record(event.durationMs / 1_000, ofCall);
  for (const [index, { outcome }] of event.stored.entries()) {
    const attributes = {
      ...operationAttributes("enqueue", jobs[index]?.kind ?? null),
      ...transaction,
    };
    if (outcome === "enqueued") enqueued.add(1, attributes);
    else if (outcome !== "repeated") merged.add(1, { ...attributes, [OUTCOME]: outcome });
  }
}

function recordClaim({ claimed, handedBack, operation }: Instruments, event: ClaimEvent): void {
  if (event.event === "handed-back") {
    handedBack.add(1, operationAttributes("claim", event.kind));
    return;
  }
  const { jobs, durationMs } = event;
  operation.record(durationMs / 1_000, operationAttributes("claim", commonKind(jobs)));
  for (const { kind } of jobs) claimed.add(1, operationAttributes("claim", kind));
}

function recordRun({ process, latency }: Instruments, event: RunEvent): void {
  const attributes = operationAttributes("run", event.run.kind);
  if (event.event === "start") {
    latency.record(event.latencyMs / 1_000, attributes);
    return;
  }
  const type = event.error?.name ?? "_OTHER";
  process.record(
    event.durationMs / 1_000,
    event.result === "failed" ? { ...attributes, [ERROR_TYPE]: type } : attributes,
  );
}

function recordSettle({ settled, unsettled, settle }: Instruments, event: SettleEvent): void {
  const attributes = operationAttributes("settle", event.run.kind);
  if (event.event !== "settled") {
    unsettled.add(1, { ...attributes, [OUTCOME]: event.event });
    return;
  }
  settled.add(1, { ...attributes, [OUTCOME]: event.outcome });
  settle.record(event.latencyMs / 1_000, attributes);
}

function recordRecovery({ recovered }: Instruments, { kind, outcome }: RecoverEvent): void {
  recovered.add(1, { ...operationAttributes("settle", kind), [OUTCOME]: outcome });
}
