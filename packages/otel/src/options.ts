import {
  metrics as globalMetrics,
  trace as globalTrace,
  type MeterProvider,
  type TracerProvider,
} from "@opentelemetry/api";
import { checkMembers, invalidArgument, readArgument, show } from "@venturi/core";
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

/** Options with their defaults. */
export type ResolvedInstrumentOptions = {
  readonly [Name in keyof InstrumentOptions]-?: Exclude<InstrumentOptions[Name], undefined>;
};

const known = ["meterProvider", "tracerProvider", "traces", "metrics", "claimSpans", "runSpans"];

/** Validates options and fills in defaults; throws `invalid-argument` naming the option. */
export function resolveInstrumentOptions(options: InstrumentOptions): ResolvedInstrumentOptions {
  return readArgument("options", () => {
    checkMembers("options", options, known, "instrument");
    const { tracerProvider = globalTrace, runSpans = "children" } = options;
    return {
      meterProvider: toMeterProvider(options.meterProvider),
      tracerProvider: provider("tracerProvider", tracerProvider, "getTracer"),
      traces: flag("traces", options.traces),
      metrics: flag("metrics", options.metrics),
      claimSpans: flag("claimSpans", options.claimSpans),
      runSpans: toPlace(runSpans),
    };
  });
}

/** The provider of metrics that are recorded by themselves; throws `invalid-argument`. */
export function resolveMeterSource(options: MeterSource): MeterProvider {
  return readArgument("options", () => {
    checkMembers("options", options, ["meterProvider"], "observeStats");
    return toMeterProvider(options.meterProvider);
  });
}

function toMeterProvider(value: MeterProvider = globalMetrics): MeterProvider {
  return provider("meterProvider", value, "getMeter");
}

function provider<T>(argument: string, value: T, method: keyof T & string): T {
  if (typeof readArgument(argument, () => value?.[method]) === "function") return value;
  throw invalidArgument(
    argument,
    `is no provider (got ${show(value)})`,
    `pass an object with ${method}, or leave it out for the global one`,
  );
}

function flag(argument: string, value: unknown = true): boolean {
  if (typeof value === "boolean") return value;
  throw invalidArgument(argument, "must be true or false", "leave it out for true");
}

function toPlace(value: unknown): RunSpanPlace {
  if (value === "children" || value === "roots") return value;
  throw invalidArgument("runSpans", `is ${show(value)}`, 'pass "children" or "roots"');
}
