import type { MeterProvider, TracerProvider } from "@opentelemetry/api";
import type { RunSpanPlace } from "./run-spans.ts";

/** Where metrics go. */
export interface MeterSource {
  /**
   * Makes the meter.
   * @defaultValue the global one, which has to be registered before
   */
  readonly meterProvider?: MeterProvider | undefined;
}

/** What is recorded, and where it goes. */
export interface InstrumentOptions extends MeterSource {
  /**
   * Makes the tracer.
   * @defaultValue the global one
   */
  readonly tracerProvider?: TracerProvider | undefined;
  /**
   * Whether spans are recorded and trace contexts put into the headers of jobs.
   * @defaultValue true
   */
  readonly traces?: boolean | undefined;
  /**
   * Whether metrics are recorded.
   * @defaultValue true
   */
  readonly metrics?: boolean | undefined;
  /**
   * Whether every claim that brings jobs has a span.
   * @defaultValue true
   */
  readonly claimSpans?: boolean | undefined;
  /**
   * Where the spans of runs belong: `"children"` of the span that enqueued the job, in its trace, however much later;
   * or `"roots"` of traces of their own, which only link to it.
   * @defaultValue "children"
   */
  readonly runSpans?: RunSpanPlace | undefined;
}
