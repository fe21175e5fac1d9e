import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const program = "/usr/sbin/pgbouncer";

/** Whether tooling/chaos/install-pgbouncer.sh has been run here. */
export function hasPgBouncer(): boolean {
  return existsSync(program);
}

/** How many of the server's connections it takes for each database. */
export interface PgBouncerOptions {
  /** @defaultValue 12 */
  readonly poolSize?: number;
}

/** A PgBouncer in transaction mode before a server. */
export class PgBouncer {
  readonly #folder: string;
  readonly #port: number;
  readonly #target: URL;
  #process: ChildProcess | undefined;

  private constructor(folder: string, port: number, target: URL) {
    this.#folder = folder;
    this.#port = port;
    this.#target = target;
  }

  static async before(
    serverUrl: string,
    { poolSize = 12 }: PgBouncerOptions = {},
  ): Promise<PgBouncer> {
    const target = new URL(serverUrl);
    const port = await freePort();
    const folder = mkdtempSync(join(tmpdir(), "venturi-pgbouncer-"));
    writeFileSync(
      join(folder, "pgbouncer.ini"),
      `[databases]
* = host=${target.hostname} port=${target.port || 5432} user=${target.username} password=${decodeURIComponent(target.password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 500
server_login_retry = 1
`,
    );
    // It refuses to run as root.
    if (process.getuid?.() === 0) execFileSync("chown", ["-R", "nobody", folder]);
    const bouncer = new PgBouncer(folder, port, target);
    await bouncer.start();
    return bouncer;
  }

  /** The same database through it. */
  through(url: string): string {
    const changed = new URL(url);
    changed.host = this.address;
    changed.password = "";
    changed.username = this.#target.username;
    return changed.href;
  }

  /** Where it listens, as `host:port`. */
  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    const user = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
    this.#process = spawn(program, ["-q", ...user, join(this.#folder, "pgbouncer.ini")], {
      stdio: "ignore",
    });
    while (!(await answers(this.#port))) await sleep(20);
  }

  async kill(): Promise<void> {
    const bouncer = this.#process;
    if (bouncer === undefined || bouncer.exitCode !== null) return;
    const ended = once(bouncer, "exit");
    bouncer.kill("SIGKILL");
    await ended;
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const settle = (value: boolean) => {
      socket.destroy();
      resolve(value);
    };
    socket.once("connect", () => settle(true)).once("error", () => settle(false));
  });
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}
