import { setTimeout as sleep } from "node:timers/promises";
import type { ActorProcess } from "../process/actor-process.ts";
import type { Stage } from "../stage.ts";
import type { Scenario } from "./scenario.ts";

/** Processes that have been started ahead, since starting one takes longer than killing one. */
class Reserve {
  readonly #stage: Stage;
  readonly #waiting: ActorProcess[] = [];
  #made = 0;

  constructor(stage: Stage, size: number) {
    this.#stage = stage;
    for (let i = 0; i < size; i++) this.#add();
  }

  /** Kills a worker and puts another one in its place. */
  async replaceKilled(): Promise<void> {
    this.#add();
    await this.#stage.killWorker(this.#stage.someWorker());
    await this.#stage.addWorker(this.#waiting.shift());
  }

  async dismiss(): Promise<void> {
    await Promise.all(this.#waiting.map((actor) => actor.quit()));
  }

  #add(): void {
    this.#made += 1;
    this.#waiting.push(this.#stage.actor(`worker-after-kill-${this.#made}`));
  }
}

export const workerKill: Scenario = {
  name: "worker-kill",
  summary: "a worker is killed (SIGKILL), and started again when others have taken its jobs",
  onlySuspectsLose: true,
  async fault(stage) {
    await stage.killWorker(stage.someWorker());
    await sleep(stage.pace.faultMs);
    await stage.addWorker(stage.actor("worker-after-kill"));
  },
};

export const workerKills: Scenario = {
  name: "worker-kills",
  summary: "workers are killed (SIGKILL) one after another and replaced at once",
  isQuick: true,
  isTested: true,
  onlySuspectsLose: true,
  async fault(stage) {
    const reserve = new Reserve(stage, 1);
    for (let kill = 1; kill <= stage.pace.repeats; kill++) {
      await reserve.replaceKilled();
      await sleep(stage.random() * 400);
    }
    await reserve.dismiss();
  },
};

/** As acceptance asks for: at the full pace 500 kills while 100,000 jobs are worked off. */
export const workerMassacre: Scenario = {
  name: "worker-massacre",
  summary: "500 workers are killed (SIGKILL) while 100,000 jobs are worked off",
  onlySuspectsLose: true,
  async startWorkers(stage) {
    // They get more done than the usual three.
    await fill(stage, mostLeft(stage));
    for (let i = 0; i < 5; i++) await stage.addWorker();
  },
  async fault(stage) {
    const { kills, jobs } = stage.pace.massacre;
    const backlog = () => stage.sampler.samples.at(-1)?.backlog ?? 0;
    const reserve = new Reserve(stage, 4);
    for (let kill = 1; kill <= kills; kill++) {
      // Jobs come as fast as workers go: on a slow machine too there is work in every one that is killed.
      if (kill % filledBy === 1) await fill(stage, (jobs / kills) * filledBy);
      await reserve.replaceKilled();
      await sleep(stage.random() * 250);
      while (backlog() > mostLeft(stage)) await sleep(250);
    }
    await reserve.dismiss();
  },
  async verify(stage) {
    const { kills } = stage.pace.massacre;
    return stage.suspects.size === kills ? [] : [`${stage.suspects.size} workers were killed`];
  },
};

/** Kills for which jobs are filled in at once. */
const filledBy = 10;

async function fill({ producers, random }: Stage, count: number): Promise<void> {
  await producers[Math.floor(random() * producers.length)]?.call("fill", { count });
}

/** Enough for the windows that follow. */
function mostLeft({ pace }: Stage): number {
  return 5 * pace.perSecond * ((pace.windows * pace.windowMs) / 1_000 + 4);
}
