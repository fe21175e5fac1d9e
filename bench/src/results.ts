import type { Machine } from "./measure/machine.ts";
import type { ScenarioOutcomes } from "./scenarios/index.ts";
import type { Sizes } from "./sizes.ts";
import type { Settings } from "./systems/system.ts";

/** Everything that one run of the benchmarks found, and what it was found with. */
export interface Results {
  readonly mode: Sizes["name"];
  readonly startedAt: string;
  readonly minutes: number;
  readonly machine: Machine;
  readonly versions: Readonly<Record<string, string>>;
  readonly server: Readonly<Record<string, string>>;
  readonly sizes: Sizes;
  readonly settings: Readonly<Record<string, Settings>>;
  readonly scenarios: Partial<ScenarioOutcomes>;
  /** Jobs lost or run twice, and systems that failed. */
  readonly problems: readonly string[];
}
