import { axis } from "./axis.ts";
import { cost } from "./cost.ts";
import { drain } from "./drain.ts";
import { enqueue } from "./enqueue.ts";
import { fullness } from "./fullness.ts";
import { latency } from "./latency.ts";
import { pressure } from "./pressure.ts";

/** All scenarios, in the order of the report. */
export const scenarios = { drain, axis, latency, enqueue, pressure, fullness, cost };

export type ScenarioName = keyof typeof scenarios;

/** What each scenario found. */
export type ScenarioOutcomes = {
  [Name in ScenarioName]: Awaited<ReturnType<(typeof scenarios)[Name]["run"]>>;
};
