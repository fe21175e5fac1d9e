import type { SystemName } from "./names.ts";
import type { System } from "./system.ts";

/** Loads one system, so that no process pays for the others. */
export async function loadSystem(name: SystemName): Promise<System> {
  switch (name) {
    case "venturi":
      return (await import("./venturi.ts")).venturi;
    case "graphile-worker":
      return (await import("./graphile-worker.ts")).graphileWorker;
    case "pg-boss":
      return (await import("./pg-boss.ts")).pgBoss;
    case "bullmq-postgres":
      return (await import("./bullmq.ts")).bullmqPostgres;
    case "bullmq-redis":
      return (await import("./bullmq.ts")).bullmqRedis;
    case "limit":
      return (await import("./limit.ts")).limit;
    case "floor":
      return (await import("./floor.ts")).floor;
  }
}
