import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { median } from "./measure/figures.ts";
import type { ScenarioOutcomes } from "./scenarios/index.ts";

/** Costs of venturi that do not depend on how fast the machine is. */
export interface Costs {
  /** What the statements write to enqueue and run a job of 20 B. */
  readonly walBytesPerJob: number;
  readonly statementsPerJob: number;
  readonly hotShare: number;
  /** Of the median claim of 100 jobs, by what else the tables hold. */
  readonly buffersPerClaim: Readonly<Record<string, number>>;
}

const file = fileURLToPath(new URL("../costs.json", import.meta.url));

/** How far a cost may rise above what is stored: batches form by themselves, so that a busy machine sends more. */
const mostRise = { walBytesPerJob: 1.1, statementsPerJob: 2.5, buffersPerClaim: 1.1 } as const;
const mostHotLoss = 0.03;

/** The costs among what the scenarios found; null where they were not all run. */
export function measuredCosts({ cost, fullness }: Partial<ScenarioOutcomes>): Costs | null {
  const runs = cost?.find(({ contender }) => contender === "venturi, best")?.jobs[20] ?? [];
  if (fullness === undefined || runs.length === 0) return null;
  const middle = (values: readonly number[]) => Number(median(values).toPrecision(4));
  return {
    walBytesPerJob: middle(runs.map(({ statementWalBytes }) => statementWalBytes)),
    statementsPerJob: middle(runs.map(({ statements }) => statements)),
    hotShare: middle(runs.map(({ hotShare }) => hotShare ?? 0)),
    buffersPerClaim: Object.fromEntries(
      fullness.map(({ name, kinds, full }) => [
        `${name}, kinds registered: ${kinds}`,
        full.costs?.medianBuffers ?? Number.NaN,
      ]),
    ),
  };
}

/** What has become dearer than it was when the costs were stored. */
export function dearer(measured: Costs, stored: Costs): string[] {
  const found: string[] = [];
  const compare = (what: string, now: number, before: number, rise: number) => {
    if (now <= before * rise) return;
    found.push(`${what}: ${now}, stored is ${before}, and ${rise} times that is allowed`);
  };
  for (const what of ["walBytesPerJob", "statementsPerJob"] as const)
    compare(what, measured[what], stored[what], mostRise[what]);
  for (const [name, before] of Object.entries(stored.buffersPerClaim)) {
    const now = measured.buffersPerClaim[name] ?? Number.POSITIVE_INFINITY;
    compare(`buffersPerClaim, ${name}`, now, before, mostRise.buffersPerClaim);
  }
  if (measured.hotShare < stored.hotShare - mostHotLoss)
    found.push(`hotShare: ${measured.hotShare}, stored is ${stored.hotShare}`);
  return found;
}

export async function storedCosts(): Promise<Costs> {
  return JSON.parse(await readFile(file, "utf8")) as Costs;
}

export async function storeCosts(costs: Costs): Promise<void> {
  await writeFile(file, `${JSON.stringify(costs, null, 2)}\n`);
}
