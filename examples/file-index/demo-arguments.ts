import { statSync } from "node:fs";
import { parseArgs } from "node:util";

export interface DemoArguments {
  readonly directory: string;
  readonly workers: number;
  /** Whether the database goes with the demo's end. */
  readonly isTemporary: boolean;
}

const mostWorkers = 64;

/** What the demo is called with, or what to print instead of starting it, and the exit code that goes with it. */
export function readDemoArguments(
  args: readonly string[],
): DemoArguments | { readonly usage: string; readonly exitCode: number } {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: {
        help: { type: "boolean", short: "h", default: false },
        temporary: { type: "boolean", default: false },
        workers: { type: "string", default: "2" },
      },
      allowPositionals: true,
    });
    if (values.help) return { usage, exitCode: 0 };
    const [directory = ".", ...more] = positionals;
    if (more.length > 0) throw new Error(`one directory at a time, not ${positionals.join(", ")}`);
    if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory())
      throw new Error(`${directory} is not a directory`);
    const workers = Number(values.workers);
    if (!(Number.isInteger(workers) && workers >= 1 && workers <= mostWorkers))
      throw new Error(`--workers takes a whole number from 1 to ${mostWorkers}`);
    return { directory, workers, isTemporary: values.temporary };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return { usage: `${problem}\n\n${usage}`, exitCode: 2 };
  }
}

export const usage = `usage: npm run demo -- [DIRECTORY] [--workers 2]
or, with a database: DATABASE_URL=postgres://… node demo.ts [DIRECTORY] [--workers 2]`;
