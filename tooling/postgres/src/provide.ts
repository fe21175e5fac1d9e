import { startContainer } from "./container.ts";
import { startEmbedded } from "./embedded.ts";
import { type PostgresOptions, type RunningPostgres, resolveOptions } from "./options.ts";

/**
 * The variables read here: `DATABASE_URL` names a server that runs already; `VENTURI_POSTGRES` =
 * `container` asks for Docker.
 */
export type PostgresEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * Provides a server: the one that the environment names, else a container when it asks for one and
 * a Docker engine answers, else the embedded server.
 */
export async function providePostgres(
  options: PostgresOptions = {},
  environment: PostgresEnvironment = process.env,
): Promise<RunningPostgres> {
  const url = environment["DATABASE_URL"];
  if (url) return existing(url);
  const resolved = resolveOptions(options);
  if (environment["VENTURI_POSTGRES"] === "container") {
    const container = await startContainer(resolved);
    if (container) return container;
  }
  return startEmbedded(resolved);
}

function existing(url: string): RunningPostgres {
  const stop = () => Promise.resolve();
  return { origin: "environment", url, stop, [Symbol.asyncDispose]: stop };
}
