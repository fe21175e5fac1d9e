import { setTimeout as sleep } from "node:timers/promises";
import { createDatabase, dropDatabase, hasPgBouncer, PgBouncer } from "@venturi-tooling/postgres";
import type { Stage } from "../stage.ts";
import type { Scenario } from "./scenario.ts";

const bouncers = new WeakMap<Stage, PgBouncer>();

function bouncerOf(stage: Stage): PgBouncer {
  const bouncer = bouncers.get(stage);
  if (bouncer === undefined) throw new Error("PgBouncer has not been started");
  return bouncer;
}

/** Everything through PgBouncer, which is killed and started again; then every case of the stores' contract. */
function pooler(name: string, summary: string, listens: boolean): Scenario {
  return {
    name,
    summary,
    sharesConnections: true,
    worker: { pollMax: listens ? 5_000 : 500 },
    async prepare(stage) {
      const bouncer = await PgBouncer.before(stage.server.url);
      bouncers.set(stage, bouncer);
      stage.atEnd(() => bouncer.close());
      const through = { url: bouncer.through(stage.url), preparedStatements: false };
      const hearing = listens ? { listenUrl: stage.url } : { listen: false };
      stage.route({ worker: { ...through, ...hearing }, producer: through });
    },
    async fault(stage) {
      const bouncer = bouncerOf(stage);
      for (let time = 0; time < 2; time++) {
        await bouncer.kill();
        await sleep(stage.pace.faultMs / 4);
        await bouncer.start();
        await sleep(stage.pace.faultMs / 4);
      }
    },
    async verify(stage) {
      const directUrl = await createDatabase(stage.server.url);
      try {
        return await stage.withActor(async (actor) => {
          await actor.call("migrate", { url: directUrl });
          const url = bouncerOf(stage).through(directUrl);
          const { passed, failures } = await actor.call("contract", { url, directUrl, listens });
          stage.log(`${passed} cases of the contract of stores hold`);
          return failures;
        });
      } finally {
        await dropDatabase(stage.server.url, directUrl);
      }
    },
  };
}

export const poolerScenarios: readonly Scenario[] = hasPgBouncer()
  ? [
      pooler("pooler", "through PgBouncer in transaction mode, listening past it", true),
      pooler("pooler-polling", "through PgBouncer in transaction mode, without listening", false),
    ]
  : [];
