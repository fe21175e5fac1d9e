import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import {
  type PostgresOptions,
  type RunningPostgres,
  resolveOptions,
  serverSettings,
} from "./options.ts";

/** What the keeper process is asked for. */
export interface KeeperRequest {
  readonly version: number;
  readonly settings: Readonly<Record<string, string>>;
}

/** What the keeper process answers, once. */
export type KeeperAnswer = { readonly url: string } | { readonly error: string };

/**
 * Starts the embedded server on a free port of 127.0.0.1.
 *
 * A keeper process of its own session holds the server: a Ctrl-C in the terminal does not reach
 * it, and when the pipe from this process closes, however this process ended, it stops the server
 * and removes its data.
 */
export async function startEmbedded(options: PostgresOptions = {}): Promise<RunningPostgres> {
  const resolved = resolveOptions(options);
  const request: KeeperRequest = { version: resolved.version, settings: serverSettings(resolved) };
  const keeper = spawn(
    process.execPath,
    [
      "--import",
      pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href,
      fileURLToPath(new URL("./keeper.ts", import.meta.url)),
      JSON.stringify(request),
    ],
    { detached: true, stdio: ["pipe", "pipe", "inherit"], env: keeperEnvironment() },
  );
  const ended = once(keeper, "exit");
  const answer = await firstAnswer(keeper.stdout, ended);
  if ("error" in answer) {
    await ended;
    throw new Error(`PostgreSQL ${resolved.version} did not start: ${answer.error}`);
  }
  // Forgetting to stop the server must not keep this process alive.
  keeper.unref();
  for (const pipe of [keeper.stdin, keeper.stdout]) unref(pipe);

  const stop = async () => {
    keeper.ref();
    keeper.stdin.end();
    if (keeper.exitCode === null && keeper.signalCode === null) await ended;
  };
  return { origin: "embedded", url: answer.url, stop, [Symbol.asyncDispose]: stop };
}

async function firstAnswer(
  output: NodeJS.ReadableStream,
  ended: Promise<unknown>,
): Promise<KeeperAnswer> {
  const lines = createInterface({ input: output });
  const line = once(lines, "line").then(([text]) => JSON.parse(String(text)) as KeeperAnswer);
  const gone = ended.then(() => ({ error: "its keeper process ended early" }));
  const answer = await Promise.race([line, gone]);
  lines.close();
  return answer;
}

/** The keeper must not run what the parent's Node options ask for (loaders, inspectors). */
function keeperEnvironment(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _, ...rest } = process.env;
  return rest;
}

function unref(pipe: object): void {
  if ("unref" in pipe && typeof pipe.unref === "function") pipe.unref();
}
