import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Scenario } from "./scenario.ts";

/** As often as `migrate` tries a step. */
const attempts = 12;

export const rollingDeploy: Scenario = {
  name: "rolling-deploy",
  summary: "the schema is made newer than the code, then workers are stopped in order and replaced",
  async fault(stage) {
    await stage.withClient(makeNewer);
    for (const [index, worker] of [...stage.workers].entries()) {
      const successor = stage.actor(`worker-deployed-${index + 1}`);
      await stage.stopWorker(worker);
      await stage.addWorker(successor);
      await sleep(stage.pace.faultMs / 8);
    }
  },
};

export const upkeep: Scenario = {
  name: "upkeep",
  summary: "cleanup by two processes, migrate by three and VACUUM, under load",
  async fault(stage) {
    const { url } = stage;
    const until = performance.now() + stage.pace.faultMs;
    const again = async (work: () => Promise<unknown>) => {
      while (performance.now() < until) await work();
    };
    const cleaning = () =>
      stage.withActor((actor) => again(() => actor.call("cleanUp", { url, olderThanMs: 1_000 })));
    const migrating = () => stage.withActor((actor) => again(() => actor.call("migrate", { url })));
    const vacuuming = () =>
      stage.withClient((client) => again(() => client.query("vacuum (analyze)")));
    await Promise.all([cleaning(), cleaning(), migrating(), migrating(), migrating(), vacuuming()]);
  },
  async verify(stage) {
    const { rows } = await stage.withClient((client) =>
      client.query("select count(*)::int as n from chaos_deleted_jobs"),
    );
    return Number(rows[0]?.n) > 0 ? [] : ["nothing was cleaned up"];
  },
};

/**
 * What a later migration that older code may live with does: more columns, a higher version. Whoever locks one table
 * after the other under load may meet a deadlock, and tries again, as `migrate` does.
 */
async function makeNewer(client: pg.Client): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await client.query(`alter table venturi_queue add column chaos_note text;
        alter table venturi_journal add column chaos_note text;
        update venturi_meta set schema_version = schema_version + 1`);
      return;
    } catch (error) {
      const isDeadlock = error instanceof pg.DatabaseError && error.code === "40P01";
      if (!isDeadlock || attempt === attempts) throw error;
    }
  }
}
