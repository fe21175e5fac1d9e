import { axis } from "./axis.ts";
import { drain } from "./drain.ts";
import { latency } from "./latency.ts";

/** All scenarios, in the order of the report. */
export const scenarios = { drain, axis, latency };

/** What each scenario found. */
export type ScenarioOutcomes = {
  [Name in keyof typeof scenarios]: Awaited<ReturnType<(typeof scenarios)[Name]["run"]>>;
};
