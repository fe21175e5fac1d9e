import { connect } from "node:net";
import { type PostgresOptions, type RunningPostgres, serverSettings } from "./options.ts";

/** Starts PostgreSQL in a container, or returns undefined where no Docker engine answers. */
export async function startContainer(
  options: Required<PostgresOptions>,
): Promise<RunningPostgres | undefined> {
  if (!(await dockerAnswers())) return undefined;
  const { PostgreSqlContainer } = await import("@testcontainers/postgresql");
  const settings = Object.entries(serverSettings(options));
  const container = await new PostgreSqlContainer(`postgres:${options.version}-alpine`)
    .withCommand(["postgres", ...settings.flatMap(([name, value]) => ["-c", `${name}=${value}`])])
    .start();
  const stop = async () => {
    await container.stop();
  };
  return {
    origin: "container",
    url: container.getConnectionUri(),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function dockerAnswers(): Promise<boolean> {
  const address = dockerAddress(process.env["DOCKER_HOST"]);
  return new Promise((resolve) => {
    const socket = connect(address);
    const answer = (answers: boolean) => {
      socket.destroy();
      resolve(answers);
    };
    socket.setTimeout(2_000, () => answer(false));
    socket.once("connect", () => answer(true));
    socket.once("error", () => answer(false));
  });
}

function dockerAddress(
  host: string | undefined,
): { path: string } | { host: string; port: number } {
  if (!host) return { path: "/var/run/docker.sock" };
  const url = new URL(host);
  if (url.protocol === "unix:") return { path: url.pathname };
  return { host: url.hostname, port: Number(url.port || 2375) };
}
