import {
  type Attributes,
  context,
  type MeterProvider,
  propagation,
  SpanKind,
  SpanStatusCode,
  type TracerProvider,
  trace,
} from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  CompositePropagator,
  W3CBaggagePropagator,
  W3CTraceContextPropagator,
} from "@opentelemetry/core";
import { MetricReader, MeterProvider as SdkMeterProvider } from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";

/** A span as it was exported. */
export interface SpanRecord {
  readonly name: string;
  readonly kind: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly links: readonly string[];
  readonly attributes: Attributes;
  readonly status: string;
  readonly durationMs: number;
}

/** A counter, a gauge or the count of a histogram, for one set of attributes. */
export interface PointRecord {
  readonly name: string;
  readonly attributes: Attributes;
  readonly value: number;
}

export interface Telemetry {
  readonly spans: readonly SpanRecord[];
  readonly points: readonly PointRecord[];
}

/** An OpenTelemetry SDK that keeps everything in memory, registered as the process's own. */
export class MemorySdk {
  readonly tracerProvider: TracerProvider;
  readonly meterProvider: MeterProvider;
  readonly #spans = new InMemorySpanExporter();
  readonly #reader = new ManualReader();

  constructor() {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    propagation.setGlobalPropagator(
      new CompositePropagator({
        propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()],
      }),
    );
    const spanProcessors = [new SimpleSpanProcessor(this.#spans)];
    this.tracerProvider = new BasicTracerProvider({ spanProcessors });
    this.meterProvider = new SdkMeterProvider({ readers: [this.#reader] });
    trace.setGlobalTracerProvider(this.tracerProvider);
  }

  /** Forgets the spans so far. */
  reset(): void {
    this.#spans.reset();
  }

  async collect(): Promise<Telemetry> {
    const { resourceMetrics, errors } = await this.#reader.collect();
    if (errors.length > 0) throw errors[0];
    const metrics = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
    const points = metrics.flatMap(({ descriptor, dataPoints }) =>
      dataPoints.map(({ attributes, value }) => ({
        name: descriptor.name,
        attributes,
        value: typeof value === "number" ? value : value.count,
      })),
    );
    const spans = this.#spans.getFinishedSpans().map((span) => ({
      name: span.name,
      kind: SpanKind[span.kind],
      traceId: span.spanContext().traceId,
      spanId: span.spanContext().spanId,
      parentSpanId: span.parentSpanContext?.spanId ?? null,
      links: span.links.map((link) => link.context.spanId),
      attributes: span.attributes,
      status: SpanStatusCode[span.status.code],
      durationMs: span.duration[0] * 1_000 + span.duration[1] / 1e6,
    }));
    return { spans, points };
  }
}

class ManualReader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {
    // Nothing is kept back.
  }

  protected override async onShutdown(): Promise<void> {
    // Nothing was opened.
  }
}
