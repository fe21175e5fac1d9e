import { crowd, terminatedBackends } from "./connections.ts";
import type { Scenario } from "./scenario.ts";
import { serverCrash, serverCrashLoop, serverRestart } from "./server-down.ts";
import { blockedLoops, workerFreeze } from "./worker-freeze.ts";
import { workerKill, workerKills } from "./worker-kill.ts";

export const scenarios: readonly Scenario[] = [
  workerKill,
  workerKills,
  workerFreeze,
  serverRestart,
  serverCrash,
  serverCrashLoop,
  terminatedBackends,
  crowd,
  blockedLoops,
];
