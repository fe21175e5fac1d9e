import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus, release, totalmem, type } from "node:os";
import { dirname, join } from "node:path";
import pg from "pg";

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly system: string;
}

export function machine(): Machine {
  const all = cpus();
  return {
    cpu: all[0]?.model.trim() ?? "unknown",
    cores: all.length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
  };
}

/** Versions of everything that is measured, as installed. */
export function packageVersions(): Record<string, string> {
  const resolve = createRequire(import.meta.url).resolve;
  const version = (name: string): string => {
    for (let folder = dirname(resolve(name)); ; folder = dirname(folder)) {
      try {
        const text = readFileSync(join(folder, "package.json"), "utf8");
        const manifest = JSON.parse(text) as { name?: string; version?: string };
        if (manifest.name === name) return manifest.version ?? "unknown";
      } catch (error) {
        // A folder without a package.json: look further up.
        if (folder === dirname(folder)) throw error;
      }
    }
  };
  return Object.fromEntries(
    ["graphile-worker", "pg-boss", "bullmq", "pg", "valibot"].map((name) => [name, version(name)]),
  );
}

/** Which source was measured, where git knows. */
export function commit(): string {
  const { status, stdout } = spawnSync("git", ["describe", "--always", "--dirty"], {
    encoding: "utf8",
  });
  return status === 0 ? stdout.trim() : "unknown";
}

export function nodeVersion(node: string): string {
  return execFileSync(node, ["--version"], { encoding: "utf8" }).trim();
}

const settings = [
  "server_version",
  "fsync",
  "synchronous_commit",
  "full_page_writes",
  "wal_compression",
  "shared_buffers",
  "max_wal_size",
  "checkpoint_timeout",
  "autovacuum",
  "shared_preload_libraries",
] as const;

/** The server's version, and the settings that decide how fast anything is. */
export async function serverSettings(url: string): Promise<Record<string, string>> {
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query<{ name: string; value: string }>(
    "select name, current_setting(name) as value from unnest($1::text[]) name",
    [settings],
  );
  await client.end();
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
}
