import { setTimeout as sleep } from "node:timers/promises";
import type { Scenario } from "./scenario.ts";

export const serverRestart: Scenario = {
  name: "server-restart",
  summary: "PostgreSQL is shut down in order, stays away for a while and is started",
  async fault({ server, pace }) {
    await server.halt();
    await sleep(pace.faultMs);
    await server.start();
  },
};

export const serverCrash: Scenario = {
  name: "server-crash",
  summary: "PostgreSQL crashes, stays away for a while and recovers",
  isQuick: true,
  isTested: true,
  async fault({ server, pace }) {
    await server.crash();
    await sleep(pace.faultMs / 2);
    await server.start();
  },
};

export const serverCrashLoop: Scenario = {
  name: "server-crash-loop",
  summary: "PostgreSQL crashes again as soon as it has recovered, several times",
  async fault({ server, pace, random }) {
    const until = performance.now() + pace.faultMs;
    while (performance.now() < until) {
      await server.crash();
      await sleep(random() * 200);
      await server.start();
      await sleep(random() * 1_000);
    }
  },
};
