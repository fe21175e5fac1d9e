export { instrument } from "./instrument.ts";
export type { Instrumentation } from "./instrumentation.ts";
export type { InstrumentOptions, MeterSource } from "./options.ts";
export type { RunSpanPlace } from "./run-spans.ts";
export { observeStats, type StatsSource } from "./stats-gauges.ts";
