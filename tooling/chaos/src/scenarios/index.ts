import { clockSkew } from "./clock-skew.ts";
import { crowd, terminatedBackends } from "./connections.ts";
import { rollingDeploy, upkeep } from "./deploys.ts";
import { networkScenarios } from "./network.ts";
import { poolerScenarios } from "./pooler.ts";
import type { Scenario } from "./scenario.ts";
import { serverCrash, serverCrashLoop, serverRestart } from "./server-down.ts";
import { diskFull, quietNotify, readOnly, statementTimeouts, strictIsolation } from "./settings.ts";
import { standbyScenarios } from "./standby.ts";
import { blockedLoops, workerFreeze } from "./worker-freeze.ts";
import { workerKill, workerKills, workerMassacre } from "./worker-kill.ts";

export const scenarios: readonly Scenario[] = [
  workerKill,
  workerKills,
  workerFreeze,
  serverRestart,
  serverCrash,
  serverCrashLoop,
  terminatedBackends,
  crowd,
  ...networkScenarios,
  readOnly,
  quietNotify,
  diskFull,
  statementTimeouts,
  strictIsolation,
  rollingDeploy,
  clockSkew,
  blockedLoops,
  upkeep,
  workerMassacre,
  ...standbyScenarios,
  ...poolerScenarios,
];
