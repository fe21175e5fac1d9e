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
    for (let i = 0; i < 5; i++) await stage.addWorker();
  },
  async fault(stage) {
    const { kills, jobs } = stage.pace.massacre;
    const share = Math.ceil(jobs / stage.producers.length);
    const filled = stage.producers.map((producer) => producer.call("fill", { count: share }));
    for (let kill = 1; kill <= kills; kill++) {
      await replaceKilled(stage, kill);
      await sleep(stage.random() * 250);
    }
    await Promise.all(filled);
    // What is left by then is enough for the windows that follow, or is worked off first.
    while ((stage.sampler.samples.at(-1)?.backlog ?? 0) > leastLeft(stage)) await sleep(250);
  },
  async verify(stage) {
    const { kills } = stage.pace.massacre;
    return stage.suspects.size === kills ? [] : [`${stage.suspects.size} workers were killed`];
  },
};

function leastLeft({ pace }: Stage): number {
  return 4 * pace.perSecond * ((pace.windows * pace.windowMs) / 1_000 + 4);
}
