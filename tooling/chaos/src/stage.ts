import { mkdirSync } from "node:fs";
import { devNull } from "node:os";
import { join } from "node:path";
import {
  createDatabase,
  dropDatabase,
  type EmbeddedPostgres,
  withDatabase,
} from "@venturi-tooling/postgres";
import pg from "pg";
import { createArchive, createWritten } from "./archive.ts";
import type { Pace } from "./pace.ts";
import { ActorProcess } from "./process/actor-process.ts";
import type {
  ProducerSetup,
  WorkerReport,
  WorkerSettings,
  WorkerSetup,
} from "./process/protocol.ts";
import { seededRandom } from "./random.ts";
import { Sampler } from "./sampler.ts";

export interface StageOptions {
  readonly server: EmbeddedPostgres;
  readonly script: string;
  readonly folder: string;
  readonly seed: number;
  readonly pace: Pace;
  readonly log: (line: string) => void;
  /**
   * Whether everything is written down for the checks, which grows with every job.
   * @defaultValue true
   */
  readonly keepsRecords?: boolean;
}

/** How processes get to the database; what is absent goes there directly. */
export interface Routes {
  readonly worker?: Partial<
    Pick<WorkerSetup, "url" | "applicationUrl" | "listenUrl" | "listen" | "preparedStatements">
  >;
  readonly producer?: Partial<Pick<ProducerSetup, "url" | "preparedStatements">>;
}

const defaults: WorkerSettings = {
  concurrency: 8,
  prefetch: "auto",
  pollMax: 5_000,
  lease: 30_000,
  heartbeat: 500,
  workerTimeout: 3_000,
  shutdownTimeout: 5_000,
};

/** Workers claim ahead in different ways. */
const prefetches = ["auto", 20, 0] as const;

export const connections = 5;

/** One scenario's database and the processes that work on it. */
export class Stage {
  readonly pace: Pace;
  readonly server: EmbeddedPostgres;
  readonly random: () => number;
  readonly log: (line: string) => void;
  /** Straight to the database, past whatever stands before it. */
  url: string;
  readonly workers: ActorProcess[] = [];
  readonly producers: ActorProcess[] = [];
  /** Workers that were killed or frozen: others may recover their runs. */
  readonly suspects = new Set<string>();
  /** Warnings and whatever else processes had to say. */
  readonly complaints: string[] = [];
  /** Processes that ended though nobody ended them. */
  readonly exits: string[] = [];
  readonly diaryFolder: string;
  readonly sampler: Sampler;
  readonly #options: StageOptions;
  readonly #settings: Partial<WorkerSettings>;
  #routes: Routes = {};
  #started = 0;
  #reports: WorkerReport[] = [];
  #cleanUps: (() => Promise<unknown>)[] = [];

  private constructor(options: StageOptions, url: string, settings: Partial<WorkerSettings>) {
    this.#options = options;
    this.#settings = settings;
    this.server = options.server;
    this.pace = options.pace;
    this.log = options.log;
    this.random = seededRandom(options.seed);
    this.url = url;
    this.diaryFolder = join(options.folder, `diaries-${new URL(url).pathname.slice(1)}`);
    mkdirSync(this.diaryFolder);
    this.sampler = new Sampler(() => this.url);
  }

  static async open(options: StageOptions, settings: Partial<WorkerSettings>): Promise<Stage> {
    const stage = new Stage(options, await createDatabase(options.server.url), settings);
    stage.atEnd(() => dropDatabase(options.server.url, stage.url));
    await stage.withActor((actor) => actor.call("migrate", { url: stage.url }));
    const { keepsRecords = true } = options;
    await stage.withClient(async (client) => {
      await (keepsRecords ? createArchive : createWritten)(client);
      await endForgottenTransactions(client);
    });
    stage.sampler.start();
    return stage;
  }

  /** The address through which processes are to go from now on. */
  route(routes: Routes): void {
    this.#routes = routes;
  }

  atEnd(cleanUp: () => Promise<unknown>): void {
    this.#cleanUps.unshift(cleanUp);
  }

  /** Starts a process that has nothing to do yet. */
  actor(name: string, clockSkewMs = 0): ActorProcess {
    return new ActorProcess({
      name,
      script: this.#options.script,
      onComplaint: (text) => this.complaints.push(text),
      onExit: (text) => this.exits.push(text),
      clockSkewMs,
    });
  }

  async withActor<T>(work: (actor: ActorProcess) => Promise<T>): Promise<T> {
    const actor = this.actor("helper");
    try {
      return await work(actor);
    } finally {
      await actor.quit();
    }
  }

  async withClient<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client({
      connectionString: this.url,
      application_name: "chaos",
      // Whatever a scenario lets sessions start with. Nothing here takes minutes, unless it would take for ever.
      options: "-c statement_timeout=300s -c default_transaction_read_only=off",
    });
    await client.connect();
    try {
      return await work(client);
    } finally {
      await client.end();
    }
  }

  /** Starts a worker, in a process of its own unless one is given that waits for this. */
  async addWorker(actor = this.actor(`worker-${this.#started + 1}`)): Promise<ActorProcess> {
    const prefetch = prefetches[this.#started % prefetches.length] ?? "auto";
    this.#started += 1;
    this.workers.push(actor);
    await actor.call("startWorker", {
      url: this.url,
      ...this.#routes.worker,
      file: this.#diary(actor.name),
      name: actor.name,
      connections,
      options: { ...defaults, prefetch, ...this.#settings },
    });
    return actor;
  }

  async addProducer(clockSkewMs = 0): Promise<ActorProcess> {
    const number = this.producers.length + 1;
    const actor = this.actor(`producer-${number}`, clockSkewMs);
    this.producers.push(actor);
    await actor.call("openProducer", {
      url: this.url,
      ...this.#routes.producer,
      file: this.#diary(actor.name),
      seed: this.#options.seed + number,
      meanMs: this.pace.handlerMs,
    });
    return actor;
  }

  #diary(name: string): string {
    return this.#options.keepsRecords === false ? devNull : join(this.diaryFolder, name);
  }

  /** A worker chosen by the seed. */
  someWorker(): ActorProcess {
    const worker = this.workers[Math.floor(this.random() * this.workers.length)];
    if (worker === undefined) throw new Error("there are no workers");
    return worker;
  }

  async killWorker(worker: ActorProcess): Promise<void> {
    this.suspects.add(worker.name);
    this.workers.splice(this.workers.indexOf(worker), 1);
    await worker.kill();
  }

  /** Stops a worker in order. */
  async stopWorker(worker: ActorProcess): Promise<void> {
    this.workers.splice(this.workers.indexOf(worker), 1);
    this.#reports.push(await worker.call("stopWorker"));
    await worker.quit();
  }

  /** What stopped workers said of themselves. */
  get reports(): readonly WorkerReport[] {
    return this.#reports;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sampler.stop();
    for (const actor of [...this.workers, ...this.producers]) await actor.kill();
    for (const cleanUp of this.#cleanUps) await cleanUp();
  }
}

/**
 * What an administrator sets: a transaction whose application is out of reach, and whose server has not been told,
 * otherwise keeps its locks, and with them the jobs it has touched, for hours.
 */
async function endForgottenTransactions(client: pg.Client): Promise<void> {
  const { rows } = await client.query("select quote_ident(current_database()) as name");
  await client.query(
    `alter database ${rows[0]?.name} set idle_in_transaction_session_timeout = '5s'`,
  );
}

/** The same database on another server. */
export function sameDatabase(url: string, otherServer: string): string {
  return withDatabase(otherServer, decodeURIComponent(new URL(url).pathname.slice(1)));
}
