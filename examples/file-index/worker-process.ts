import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

export interface WorkerProcessOptions {
  readonly databaseUrl: string;
  readonly concurrency?: number;
  readonly workerTimeout?: string;
}

/** A worker in a process of its own, as it would run in life. */
export interface WorkerProcess {
  readonly child: ChildProcess;
  hasEnded(): boolean;
  /** Resolves with what it ended with: an exit code, or the signal that killed it. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

const require = createRequire(import.meta.url);

/** Starts a worker and waits until it is about to claim jobs. */
async function startWorkerProcess(options: WorkerProcessOptions): Promise<WorkerProcess> {
  const { databaseUrl, concurrency = 32, workerTimeout = "30s" } = options;
  const child = spawn(
    process.execPath,
    [
      "--conditions=@venturi/source",
      ...["--import", pathToFileURL(require.resolve("tsx")).href],
      join(dirname(require.resolve("@venturi-examples/file-index-worker")), "main.ts"),
      `--concurrency=${concurrency}`,
      `--worker-timeout=${workerTimeout}`,
    ],
    {
      env: { ...process.env, DATABASE_URL: databaseUrl },
      // The channel tells it when this process has ended, however that came about.
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      // A Ctrl-C is this process's to hear and to pass on.
      detached: true,
    },
  );
  const ended = once(child, "exit").then(([code, signal]) => code ?? signal);
  const ready = once(child, "message").then(() => true);
  if (!(await Promise.race([ready, ended.then(() => false)]))) {
    throw new Error(`a worker process ended with ${String(await ended)} before it was ready`);
  }
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  return { child, ended, hasEnded };
}

/** Starts several; when one cannot be started, none is left running. */
export async function startWorkerProcesses(
  count: number,
  options: WorkerProcessOptions,
): Promise<WorkerProcess[]> {
  const starting = Array.from({ length: count }, () => startWorkerProcess(options));
  const results = await Promise.allSettled(starting);
  const workers = results.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const failed = results.find((each) => each.status === "rejected");
  if (failed === undefined) return workers;
  await Promise.all(workers.map(stopWorkerProcess));
  throw failed.reason;
}

/** Lets a worker drain and waits for its end. */
export async function stopWorkerProcess({ child, ended }: WorkerProcess): Promise<void> {
  child.kill("SIGTERM");
  await ended;
}
