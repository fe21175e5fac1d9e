import { createDatabase, dropDatabase } from "@venturi-tooling/postgres";
import { DatabaseMeter } from "./measure/database-meter.ts";
import { BenchProcess } from "./process/bench-process.ts";
import type { Sizes } from "./sizes.ts";
import type { SystemName } from "./systems/names.ts";
import type { Settings, Variant } from "./systems/system.ts";

/** A system, how it is set up, and what the report calls it. */
export interface Contender {
  readonly system: SystemName;
  readonly variant: Variant;
}

export function title({ system, variant }: Contender): string {
  if (system === "limit" || system === "floor") return `the ${system}`;
  return `${system}, ${variant}`;
}

/** An empty database with a system's tables, its meter, and the processes that work on it. */
export interface Site extends AsyncDisposable {
  readonly url: string;
  readonly meter: DatabaseMeter;
  /** The process that made the tables, for whatever is not measured in it, or is by its times alone. */
  readonly first: BenchProcess;
  start(): Promise<BenchProcess>;
  /** Ends all processes started so far. */
  endProcesses(): Promise<void>;
}

export interface ContextOptions {
  readonly serverUrl: string;
  readonly redisUrl: string | null;
  readonly node: string;
  readonly sizes: Sizes;
  readonly log: (line: string) => void;
}

/** What scenarios share: the server, the sizes, and where they say what went wrong. */
export class BenchContext {
  readonly #options: ContextOptions;
  /** Jobs lost or run twice, and systems that failed. */
  readonly problems: string[] = [];
  /** Settings of each contender as they were used. */
  readonly settings: Record<string, Settings> = {};

  constructor(options: ContextOptions) {
    this.#options = options;
  }

  get sizes(): Sizes {
    return this.#options.sizes;
  }

  get hasRedis(): boolean {
    return this.#options.redisUrl !== null;
  }

  get node(): string {
    return this.#options.node;
  }

  log(line: string): void {
    this.#options.log(line);
  }

  /** Remembers what went wrong by its first line, and shows all of it: a stack names folders of this machine. */
  problem(text: string): void {
    const [first = ""] = text.split("\n");
    this.problems.push(first);
    this.log(`PROBLEM: ${text}`);
  }

  /** A database of its own for one measurement, dropped with the site. */
  async site(system: SystemName): Promise<Site> {
    const { serverUrl, redisUrl, node } = this.#options;
    const databaseUrl = await createDatabase(serverUrl, {});
    const meter = await DatabaseMeter.open(databaseUrl);
    const url = system === "bullmq-redis" ? (redisUrl ?? "") : databaseUrl;
    const processes: BenchProcess[] = [];
    const start = async () => {
      const started = await BenchProcess.start(node, { system, url });
      processes.push(started);
      return started;
    };
    const endProcesses = async () => {
      for (const process of processes.splice(0)) await process[Symbol.asyncDispose]();
    };
    const end = async () => {
      await endProcesses();
      await meter.forget();
      await meter.close();
      await dropDatabase(serverUrl, databaseUrl);
    };
    let first: BenchProcess;
    try {
      first = await start();
      await first.call("prepare");
    } catch (error) {
      await end();
      throw error;
    }
    return { url, meter, first, start, endProcesses, [Symbol.asyncDispose]: end };
  }

  /** Remembers what a contender was set to. */
  async remember(process: BenchProcess, contender: Contender, concurrency: number): Promise<void> {
    const { variant } = contender;
    this.settings[`${title(contender)}, concurrency ${concurrency}`] ??= await process.call(
      "settings",
      { variant, concurrency },
    );
  }
}
