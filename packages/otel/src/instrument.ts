import { recordClaim } from "./claim-spans.ts";
import { EnqueueSpans } from "./enqueue-spans.ts";
import { type Instrumentation, stopping } from "./instrumentation.ts";
import { listen, type Stop } from "./listen.ts";
import { recordMetrics } from "./metrics.ts";
import { recordOnce } from "./once.ts";
import {
  type InstrumentOptions,
  type ResolvedInstrumentOptions,
  resolveInstrumentOptions,
} from "./options.ts";
import { RunSpans } from "./run-spans.ts";

const scope = "@venturi/otel";

/**
 * Records spans and metrics of everything that queues and workers of this process do, until it is stopped. Call it
 * once, after the OpenTelemetry SDK has been started: while the same is recorded already, a further call warns through
 * OpenTelemetry's `diag`, and neither it nor stopping it does anything. Throws `invalid-argument` naming the option that
 * is unknown or unacceptable.
 *
 * @example
 * using telemetry = instrument();
 */
export function instrument(options: InstrumentOptions = {}): Instrumentation {
  const resolved = resolveInstrumentOptions(options);
  const { traces, metrics, meterProvider } = resolved;
  return stopping([
    ...(traces ? recordOnce("spans", () => recordSpans(resolved)) : []),
    ...(metrics ? recordOnce("metrics", () => recordMetrics(meterProvider.getMeter(scope))) : []),
  ]);
}

function recordSpans(options: ResolvedInstrumentOptions): readonly Stop[] {
  const { tracerProvider, claimSpans, runSpans } = options;
  const tracer = tracerProvider.getTracer(scope);
  const enqueues = new EnqueueSpans(tracer);
  const runs = new RunSpans(tracer, runSpans);
  return [
    listen("venturi:enqueue", (event) => enqueues.record(event)),
    ...(claimSpans ? [listen("venturi:claim", (event) => recordClaim(tracer, event))] : []),
    listen("venturi:run", (event) => runs.recordRun(event)),
    listen("venturi:settle", (event) => runs.recordSettle(event)),
    listen("venturi:worker", (event) => runs.recordWorker(event)),
    () => {
      enqueues.stop();
      runs.stop();
    },
  ];
}
