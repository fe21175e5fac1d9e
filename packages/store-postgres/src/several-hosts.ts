import pg from "pg";

/** `postgres://user:password@` · hosts with ports · the rest. */
const parts = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/is;

/** A connection string for each server, of one that may name several hosts with commas between, as libpq takes it. */
export function perHost(connectionString: string): readonly string[] {
  const [, before = "", hosts = "", after = ""] = parts.exec(connectionString) ?? [];
  if (!hosts.includes(",")) return [connectionString];
  return hosts.split(",").map((host) => `${before}${host.trim()}${after}`);
}

/**
 * A `pg` client that connects to whichever of several servers takes writes. Those made after one another go to the
 * same server, until a connection to it fails: then the next ones try the next.
 */
export function severalHosts(urls: readonly string[]): typeof pg.Client {
  let current = 0;
  return class extends pg.Client {
    readonly #index = current;

    constructor(config?: string | pg.ClientConfig) {
      super({ ...(typeof config === "object" ? config : {}), connectionString: urls[current] });
    }

    override connect(): Promise<this>;
    override connect(callback: (error: Error) => void): void;
    override connect(callback?: (error: Error) => void): Promise<this> | undefined {
      const connected = this.#connectToWritable();
      if (callback === undefined) return connected;
      // No error is what the driver itself hands over when all is well.
      connected.then(() => callback(undefined as unknown as Error), callback);
      return undefined;
    }

    async #connectToWritable(): Promise<this> {
      try {
        await super.connect();
        const { rows } = await super.query("select current_setting('transaction_read_only') as it");
        if (rows[0]?.it === "on") throw readOnly();
        return this;
      } catch (error) {
        if (current === this.#index) current = (current + 1) % urls.length;
        super.end().catch(() => undefined);
        throw error;
      }
    }
  };
}

function readOnly(): Error {
  return Object.assign(new Error("the server takes no writes: it is a standby, or read-only"), {
    code: "25006",
  });
}
