import type { Gate, GateResult, Stage } from "./gate.ts";

/** What a whole run counts. */
export interface Totals {
  readonly passed: number;
  readonly failed: number;
}

/** Programs say at their end what went wrong: this much of it is shown. */
const SHOWN_LINES = 40;

/**
 * Runs all stages, also after a failure, and says of each gate how it went. What failed, and why, is
 * said again at the very end: of a long log, often nothing else is kept.
 */
export async function runStages(
  stages: readonly Stage[],
  say: (line: string) => void,
): Promise<Totals> {
  let totals: Totals = { passed: 0, failed: 0 };
  const failures: string[] = [];
  for (const { gates, lanes } of stages) {
    const waiting = [...gates];
    const lane = async () => {
      for (let gate = waiting.shift(); gate; gate = waiting.shift()) {
        const started = performance.now();
        if (lanes === 1) say(`...  ${gate.name}`);
        const result = await outcome(gate);
        const line = summary(gate, result, performance.now() - started);
        totals = add(totals, result);
        say(line);
        if (result.failed > 0) {
          const reason = indent(reasonOf(result));
          say(reason);
          failures.push(`${line}\n${reason}`);
        }
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
  }
  if (failures.length > 0) say(`\nWhat failed:\n${failures.join("\n")}`);
  return totals;
}

/** A gate that throws has failed: nothing is left out of the count. */
async function outcome(gate: Gate): Promise<GateResult> {
  try {
    const result = await gate.run();
    if (result.passed + result.failed > 0) return result;
    return { passed: 0, failed: 1, output: `${result.output}\nnothing was tested` };
  } catch (error) {
    const output = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { passed: 0, failed: 1, output };
  }
}

function reasonOf({ failures, output }: GateResult): string {
  if (failures !== undefined && failures !== "") return failures;
  const lines = output.trimEnd().split("\n");
  const before = lines.length - SHOWN_LINES;
  return before > 0
    ? [`(${before} lines before these)`, ...lines.slice(before)].join("\n")
    : lines.join("\n");
}

function add(a: Totals, b: Totals): Totals {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed };
}

function summary(gate: Gate, { passed, failed }: GateResult, milliseconds: number): string {
  const mark = failed > 0 ? "FAIL" : "ok  ";
  const counts = failed > 0 ? `${passed} passed, ${failed} failed` : `${passed} passed`;
  return `${mark} ${gate.name}: ${counts} (${(milliseconds / 1_000).toFixed(1)} s)`;
}

function indent(text: string): string {
  return text.trimEnd().replaceAll(/^/gm, "     | ");
}
