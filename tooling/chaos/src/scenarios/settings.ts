import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import type { Stage } from "../stage.ts";
import type { Scenario } from "./scenario.ts";

/** Changes what sessions of the database start with, and ends those that are there. */
async function setForAll(client: pg.Client, setting: string): Promise<void> {
  const { rows } = await client.query("select quote_ident(current_database()) as name");
  await client.query(`alter database ${rows[0]?.name} ${setting}`);
  await client.query(`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`);
}

/** A database whose sessions start with a setting while the fault lasts. */
async function underSetting(stage: Stage, set: string, reset: string): Promise<void> {
  await stage.withClient((client) => setForAll(client, set));
  await sleep(stage.pace.faultMs);
  // Those who have connected meanwhile keep it, as after a failover that was undone.
  await stage.withClient(async (client) => {
    const { rows } = await client.query("select quote_ident(current_database()) as name");
    await client.query(`alter database ${rows[0]?.name} ${reset}`);
  });
}

export const readOnly: Scenario = {
  name: "read-only",
  summary: "the database takes no writes, and connections made meanwhile never will",
  isQuick: true,
  fault: (stage) =>
    underSetting(
      stage,
      "set default_transaction_read_only = on",
      "reset default_transaction_read_only",
    ),
};

export const strictIsolation: Scenario = {
  name: "strict-isolation",
  summary: "sessions start at the isolation level serializable",
  async prepare(stage) {
    await stage.withClient((client) =>
      setForAll(client, "set default_transaction_isolation = 'serializable'"),
    );
  },
  // It lasts from the start to the end; in the middle everybody has to connect anew.
  async fault(stage) {
    await stage.withClient((client) =>
      setForAll(client, "set default_transaction_isolation = 'repeatable read'"),
    );
    await sleep(stage.pace.faultMs);
    await stage.withClient((client) =>
      setForAll(client, "set default_transaction_isolation = 'serializable'"),
    );
  },
};

/** Lets every write to a table fail, or wait, as long as the fault lasts. */
async function spoilTable(stage: Stage, table: string, body: string): Promise<void> {
  await stage.withClient(async (client) => {
    await client.query(`create function chaos_spoil() returns trigger language plpgsql as $$
      begin ${body} return null; end $$`);
    await client.query(`create trigger chaos_spoil before insert or update or delete on ${table}
      for each statement execute function chaos_spoil()`);
    await sleep(stage.pace.faultMs);
    await client.query(`drop trigger chaos_spoil on ${table}; drop function chaos_spoil()`);
  });
}

export const diskFull: Scenario = {
  name: "disk-full",
  summary: "every write to the journal fails: there is no space left",
  fault: (stage) =>
    spoilTable(
      stage,
      "venturi_journal",
      "raise exception 'could not extend file: No space left on device' using errcode = '53100';",
    ),
};

export const statementTimeouts: Scenario = {
  name: "statement-timeouts",
  summary: "two writes to the journal in three take longer than statement_timeout allows",
  async prepare(stage) {
    await stage.withClient((client) => setForAll(client, "set statement_timeout = '300ms'"));
  },
  fault: (stage) =>
    spoilTable(stage, "venturi_journal", "if random() < 0.67 then perform pg_sleep(0.4); end if;"),
};

export const quietNotify: Scenario = {
  name: "notify-off",
  summary: "producers send no NOTIFY: workers find jobs by looking",
  worker: { pollMax: 500 },
  async fault(stage) {
    const { url } = stage;
    await stage.withActor((actor) => actor.call("configure", { url, notify: false }));
    await sleep(stage.pace.faultMs);
    await stage.withActor((actor) => actor.call("configure", { url, notify: true }));
  },
};
