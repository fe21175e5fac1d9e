import { setTimeout as sleep } from "node:timers/promises";
import type { Standby } from "@venturi-tooling/postgres";
import { TcpProxy } from "@venturi-tooling/testing/tcp-proxy";
import pg from "pg";
import { type Stage, sameDatabase } from "../stage.ts";
import type { Scenario } from "./scenario.ts";

interface Pair {
  readonly standby: Standby;
  /** The address that applications know, which moves with the failover. */
  readonly address: TcpProxy;
}

const pairs = new WeakMap<Stage, Pair>();

/** A commit is answered when the standby has it too, so that a failover takes nothing back. */
async function commitToBoth(url: string, both: boolean): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const value = both ? "set synchronous_standby_names = '*'" : "reset synchronous_standby_names";
  await client.query(`alter system ${value}`);
  await client.query("select pg_reload_conf()");
  await client.end();
}

function promotion(name: string, summary: string, severalHosts: boolean): Scenario {
  return {
    name,
    summary,
    recoversWithinMs: 30_000,
    async prepare(stage) {
      const { server, url } = stage;
      const standby = await server.startStandby();
      await commitToBoth(server.url, true);
      const address = await TcpProxy.before(url);
      pairs.set(stage, { standby, address });
      const both = url.replace(/@([^/]*)/, `@$1,${new URL(standby.url).host}`);
      const worker = severalHosts
        ? { url: both, applicationUrl: address.url }
        : { url: address.url };
      stage.route({ worker, producer: { url: address.url } });
      stage.atEnd(async () => {
        await address.close();
        await server.start();
        await commitToBoth(server.url, false);
        stage.url = url;
      });
    },
    async fault(stage) {
      const pair = pairs.get(stage);
      if (pair === undefined) throw new Error("there is no standby");
      await stage.server.crash();
      await sleep(stage.pace.faultMs / 2);
      await pair.standby.promote();
      stage.url = sameDatabase(stage.url, pair.standby.url);
      pair.address.moveTo(stage.url);
    },
  };
}

export const standbyScenarios: readonly Scenario[] = [
  promotion(
    "standby-promotion",
    "the server crashes for good, its standby is promoted, and the address moves there",
    false,
  ),
  promotion(
    "standby-several-hosts",
    "the same, with workers that know both servers by a connection string with two hosts",
    true,
  ),
];
