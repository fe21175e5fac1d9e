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
