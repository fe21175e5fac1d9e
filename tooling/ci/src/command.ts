import { type ChildProcess, spawn } from "node:child_process";
import { delimiter, join } from "node:path";
import { root } from "./paths.ts";

/** How a program is to be run. */
export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** Added to this process's environment; undefined takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** @defaultValue 10 minutes */
  readonly timeoutMs?: number;
}

/** How it ended. */
export interface CommandResult {
  readonly ok: boolean;
  /** Standard output and error, as they came. */
  readonly output: string;
}

/** Programs call one another by name: turbo, for one, looks for pnpm. */
const searchPath = [join(root, "node_modules", ".bin"), process.env["PATH"]].join(delimiter);

const running = new Set<ChildProcess>();

/** Runs a program to its end; neither a failure nor a timeout throws. */
export function runCommand(command: Command): Promise<CommandResult> {
  const { timeoutMs = 600_000 } = command;
  return new Promise((resolve) => {
    const child = spawn(command.program, command.args, {
      cwd: command.cwd,
      env: { ...process.env, PATH: searchPath, ...command.env },
      stdio: ["ignore", "pipe", "pipe"],
      // A group of its own, so that a timeout ends whatever the program has started.
      detached: true,
    });
    running.add(child);
    let output = "";
    const append = (chunk: Buffer) => {
      output += chunk.toString();
    };
    child.stdout.on("data", append);
    child.stderr.on("data", append);
    const timer = setTimeout(() => {
      output += `\nended after ${timeoutMs / 1_000} s without a result`;
      endGroup(child);
    }, timeoutMs);
    const settle = (ok: boolean) => {
      clearTimeout(timer);
      running.delete(child);
      resolve({ ok, output });
    };
    child.once("error", (error) => {
      output += String(error);
      settle(false);
    });
    child.once("close", (code) => settle(code === 0));
  });
}

/** Where this process is told to end, so does every program that is still running, with all it started. */
export function endCommandsWithThis(): void {
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    process.on(signal, () => {
      for (const child of running) endGroup(child);
      process.exit(code);
    });
  }
}

function endGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
