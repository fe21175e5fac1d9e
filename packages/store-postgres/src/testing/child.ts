import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** A process of a test: it is told lines and answers with lines. */
export interface Child {
  readonly process: ChildProcess;
  /** Its next line. */
  next(): Promise<string>;
  tell(line: string): void;
  /** Ends its input, upon which it should end by itself; resolves to its exit code or signal. */
  end(): Promise<number | string | null>;
}

/** Runs a script; `new URL("./testing/script.ts", import.meta.url)` names it. */
export function startChild(
  script: URL,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Child {
  const child = spawn(
    process.execPath,
    ["--conditions=@venturi/source", "--import", "tsx", fileURLToPath(script), ...args],
    { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, ...env } },
  );
  const exited = once(child, "exit");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    process: child,
    next: async () => {
      const { value, done } = await lines.next();
      if (done) throw new Error(`${script} ended without an answer`);
      return value;
    },
    tell: (line) => {
      child.stdin.write(`${line}\n`);
    },
    end: async () => {
      child.stdin.end();
      const [code, signal] = await exited;
      return code ?? signal;
    },
  };
}
