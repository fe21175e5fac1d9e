import { setTimeout as sleep } from "node:timers/promises";
import type { Stage } from "../stage.ts";
import type { Scenario } from "./scenario.ts";

/** Kills a worker and puts another one, started before, in its place. */
async function replaceKilled(stage: Stage, number: number): Promise<void> {
  const successor = stage.actor(`worker-after-kill-${number}`);
  await stage.killWorker(stage.someWorker());
  await stage.addWorker(successor);
}

export const workerKill: Scenario = {
  name: "worker-kill",
  summary: "a worker is killed (SIGKILL), and started again when others have taken its jobs",
  isQuick: true,
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
    for (let kill = 1; kill <= stage.pace.repeats; kill++) {
      await replaceKilled(stage, kill);
      await sleep(stage.random() * 400);
    }
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
    for (let kill = 1; kill <= kills; kill++) {
      // Jobs come as fast as workers go: on a slow machine too there is work in every one that is killed.
      if (kill % filledBy === 1) await fill(stage, (jobs / kills) * filledBy);
      await replaceKilled(stage, kill);
      await sleep(stage.random() * 250);
      while (backlog() > mostLeft(stage)) await sleep(250);
    }
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
