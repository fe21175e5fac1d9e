import pg from "pg";

/** How many jobs had not ended at an instant of `performance.now()`. */
export interface Sample {
  readonly at: number;
  readonly backlog: number;
}

const intervalMs = 250;

/** Counts what waits, whenever the database answers. */
export class Sampler {
  readonly samples: Sample[] = [];
  readonly #url: () => string;
  #client: pg.Client | undefined;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(url: () => string) {
    this.#url = url;
  }

  start(): void {
    const look = () => {
      this.#looking = this.#look().finally(() => {
        if (!this.#isStopped) this.#timer = setTimeout(look, intervalMs);
      });
    };
    look();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#looking;
    await this.#client?.end().catch(ignore);
  }

  async #look(): Promise<void> {
    try {
      this.#client ??= await connect(this.#url());
      const { rows } = await this.#client.query("select count(*)::int as n from venturi_queue");
      this.samples.push({ at: performance.now(), backlog: Number(rows[0]?.n) });
    } catch {
      // The database is down: a gap in the samples says so.
      void this.#client?.end().catch(ignore);
      this.#client = undefined;
    }
  }
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    application_name: "chaos-sampler",
    connectionTimeoutMillis: 2_000,
    query_timeout: 2_000,
  });
  client.on("error", ignore);
  try {
    await client.connect();
  } catch (error) {
    void client.end().catch(ignore);
    throw error;
  }
  return client;
}

function ignore(): void {
  // The next look tries again.
}
