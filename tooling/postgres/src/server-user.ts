import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Who runs the server; undefined is whoever runs this process. */
export type ServerUser = { readonly uid: number; readonly gid: number } | undefined;

/** PostgreSQL refuses to run as root, so root hands it to a system user that exists everywhere. */
export function chooseServerUser(): ServerUser {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ["postgres", "nobody", "daemon"]) {
    const user = { uid: numericId("-u", name), gid: numericId("-g", name) };
    if (user.uid > 0 && user.gid >= 0) return user;
  }
  throw new Error(
    "PostgreSQL refuses to run as root, and none of the users postgres, nobody and daemon exists: " +
      "create one, run as an ordinary user, or set DATABASE_URL",
  );
}

/** Makes an empty folder that the server's user owns and can enter. */
export function makeWorkFolder(user: ServerUser): string {
  // The temporary folder of root may be closed to others.
  const candidates = user ? [tmpdir(), "/tmp", "/var/tmp"] : [tmpdir()];
  for (const parent of candidates) {
    const folder = mkdtempSync(join(parent, "venturi-postgres-"));
    chmodSync(folder, 0o700);
    if (user) chownSync(folder, user.uid, user.gid);
    if (canRun(user, "/bin/sh", ["-c", 'cd "$0"', folder])) return folder;
    rmSync(folder, { recursive: true });
  }
  throw new Error(
    `the server's user (uid ${user?.uid}) can enter none of ${candidates.join(", ")}`,
  );
}

/** Whether the server's user can run a program to its good end. */
export function canRun(user: ServerUser, program: string, args: readonly string[]): boolean {
  const result = spawnSync(program, args, { ...user, cwd: "/", env: {}, stdio: "ignore" });
  return result.status === 0;
}

function numericId(flag: "-u" | "-g", name: string): number {
  try {
    return Number(execFileSync("id", [flag, name], { stdio: ["ignore", "pipe", "ignore"] }));
  } catch {
    return -1; // no such user
  }
}
