import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Scenario } from "./scenario.ts";

export const terminatedBackends: Scenario = {
  name: "terminated-backends",
  summary:
    "connections are ended by pg_terminate_backend, several times a second, whoever has them",
  async fault(stage) {
    await stage.withClient(async (client) => {
      const until = performance.now() + stage.pace.faultMs;
      while (performance.now() < until) {
        await client.query(`select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid() and random() < 0.3`);
        await sleep(stage.random() * 300);
      }
    });
  },
};

export const crowd: Scenario = {
  name: "idle-crowd",
  summary: "300 connections sit idle, some of them inside a transaction with an old snapshot",
  async fault(stage) {
    const clients = Array.from(
      { length: 300 },
      () =>
        new pg.Client({
          connectionString: stage.url,
          application_name: "crowd",
          options: "-c idle_in_transaction_session_timeout=0",
        }),
    );
    for (const client of clients) await client.connect();
    for (const client of clients.slice(0, 10)) {
      await client.query("begin isolation level repeatable read");
      await client.query("select count(*) from venturi_queue");
    }
    await sleep(stage.pace.faultMs);
    await Promise.all(clients.map((client) => client.end()));
  },
};
