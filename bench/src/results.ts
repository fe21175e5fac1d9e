import { readFile } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import type { Machine } from "./measure/machine.ts";
import type { ScenarioName, ScenarioOutcomes } from "./scenarios/index.ts";
import type { Sizes } from "./sizes.ts";
import type { Settings } from "./systems/system.ts";

/** When and on what a scenario was run. */
export interface ScenarioRun {
  readonly startedAt: string;
  readonly minutes: number;
  readonly rounds: number;
  /** Processes that wanted a core in the minute before: what else the machine did. */
  readonly loadBefore: number;
  /** The commit of venturi that was measured. */
  readonly source: string;
  /** Jobs lost or run twice, and systems that failed. */
  readonly problems: readonly string[];
}

/** Everything that the benchmarks found, and what it was found with. */
export interface Results {
  readonly mode: Sizes["name"];
  readonly machine: Machine;
  /** Of all but venturi. */
  readonly versions: Readonly<Record<string, string>>;
  readonly server: Readonly<Record<string, string>>;
  readonly sizes: Sizes;
  readonly settings: Readonly<Record<string, Settings>>;
  readonly runs: Readonly<Partial<Record<ScenarioName, ScenarioRun>>>;
  readonly scenarios: Partial<ScenarioOutcomes>;
}

/** The results in a folder; null where there are none. */
export async function storedResults(folder: string): Promise<Results | null> {
  try {
    return JSON.parse(await readFile(`${folder}/results.json`, "utf8")) as Results;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

/** New results, and of the old ones those that were found in the same way and not again. */
export function together(old: Results | null, found: Results): Results {
  const setup = ({ mode, machine, versions, server }: Results) => [mode, machine, versions, server];
  if (old === null || !isDeepStrictEqual(setup(old), setup(found))) return found;
  return {
    ...found,
    settings: { ...old.settings, ...found.settings },
    runs: { ...old.runs, ...found.runs },
    scenarios: { ...old.scenarios, ...found.scenarios },
  };
}
