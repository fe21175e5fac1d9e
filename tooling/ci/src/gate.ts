import { type Command, runCommand } from "./command.ts";

/** What a gate counts: every test of a test run, or one for any other check. */
export interface GateResult {
  readonly passed: number;
  readonly failed: number;
  /** What was printed; its end is shown when something failed. */
  readonly output: string;
  /** Shown in its place: exactly what failed. */
  readonly failures?: string;
}

/** One thing that must hold before a change is merged. */
export interface Gate {
  readonly name: string;
  run(): Promise<GateResult>;
}

/** Gates that run one after another, or several at a time where they do not measure time. */
export interface Stage {
  readonly lanes: number;
  readonly gates: readonly Gate[];
}

/** A gate that holds when a command ends well. */
export function commandGate(name: string, command: Command): Gate {
  return {
    name,
    run: async () => {
      const { ok, output } = await runCommand(command);
      return single(ok, output);
    },
  };
}

/** A gate that holds when a check finds no problems. */
export function checkGate(name: string, findProblems: () => Promise<readonly string[]>): Gate {
  return {
    name,
    run: async () => {
      const failures = (await findProblems()).join("\n");
      return { ...single(failures === "", failures), failures };
    },
  };
}

function single(ok: boolean, output: string): GateResult {
  return ok ? { passed: 1, failed: 0, output } : { passed: 0, failed: 1, output };
}
