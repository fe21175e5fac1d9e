import { setTimeout as sleep } from "node:timers/promises";
import type { Scenario } from "./scenario.ts";

const minuteMs = 60_000;

export const clockSkew: Scenario = {
  name: "clock-skew",
  summary: "the wall clocks of workers and a producer are minutes to days off, in both directions",
  async startWorkers(stage) {
    const skews = [-7 * minuteMs, 0, 26 * 60 * minuteMs];
    for (const [index, skewMs] of skews.entries())
      await stage.addWorker(stage.actor(`worker-${index + 1}`, skewMs));
  },
  async fault(stage) {
    // A producer from last year joins.
    const producer = await stage.addProducer(-365 * 24 * 60 * minuteMs);
    await producer.call("produce", { perSecond: stage.pace.perSecond / 10 });
    await sleep(stage.pace.faultMs);
    const { failures } = await producer.call("endProduction");
    stage.complaints.push(...failures.slice(0, 3));
  },
};
