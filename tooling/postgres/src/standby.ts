import { spawnSync } from "node:child_process";
import { chownSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import type { Cluster, Server } from "./server.ts";

/** Copies a running primary's data into a cluster that streams from it once it is started. */
export async function copyToStandby(cluster: Cluster, primary: Server): Promise<Cluster> {
  const folder = join(cluster.folder, "standby");
  const data = join(folder, "data");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { mode: 0o700 });
  if (cluster.user) chownSync(folder, cluster.user.uid, cluster.user.gid);
  const client = new pg.Client({ connectionString: primary.url });
  await client.connect();
  try {
    await client.query("select pg_backup_start('standby', true)");
    copyAs(cluster, join(cluster.folder, "data"), data);
    const { rows } = await client.query("select labelfile from pg_backup_stop(false)");
    for (const file of ["postmaster.pid", "postmaster.opts"]) rmSync(join(data, file));
    writeAs(cluster, join(data, "backup_label"), String(rows[0]?.labelfile));
    writeAs(cluster, join(data, "standby.signal"), "");
  } finally {
    await client.end();
  }
  return { ...cluster, folder };
}

/** The setting that makes a standby stream from a primary. */
export function streamsFrom({ password }: Cluster, { port }: Server): Record<string, string> {
  const primary = `host=127.0.0.1 port=${port} user=postgres password=${password}`;
  return { primary_conninfo: primary, hot_standby: "on" };
}

/** Ends a standby's recovery; returns when it takes writes. */
export async function promote({ url }: Server): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("select pg_promote(true, 60)");
  } finally {
    await client.end();
  }
}

/** As the server's user, who owns what it copies. Files may go while they are copied: recovery makes up for it. */
function copyAs({ user }: Cluster, from: string, to: string): void {
  const { error } = spawnSync("cp", ["-R", from, to], { ...user, cwd: "/", stdio: "ignore" });
  if (error) throw error;
}

function writeAs({ user }: Cluster, path: string, text: string): void {
  writeFileSync(path, text, { mode: 0o600 });
  if (user) chownSync(path, user.uid, user.gid);
}
