import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { expect, test } from "vitest";
import { createDatabase, dropDatabase } from "./databases.ts";
import { startEmbedded } from "./embedded.ts";

test("a database made from a template holds what the template holds, until it is dropped", async () => {
  await using server = await startEmbedded({ durable: false });
  const template = await createDatabase(server.url, { name: "original" });
  await query(template, "create table kept (n int)");
  const copy = await createDatabase(server.url, { template: "original" });
  expect(await query(copy, "select count(*)::int as n from kept")).toEqual([{ n: 0 }]);
  await dropDatabase(server.url, copy);
  await expect(query(copy, "select 1")).rejects.toThrow("does not exist");
});

test("settings reach the server, which listens to this machine alone", async () => {
  const settings = { shared_preload_libraries: "pg_stat_statements" };
  await using server = await startEmbedded({ durable: false, settings });
  const show = async (name: string) =>
    (await query(server.url, `show ${name}`)).flatMap(Object.values);
  expect(await show("shared_preload_libraries")).toEqual(["pg_stat_statements"]);
  expect(await show("fsync")).toEqual(["off"]);
  expect(await show("listen_addresses")).toEqual(["127.0.0.1"]);
});

test("a start that fails says what the server's log says", async () => {
  const start = startEmbedded({ settings: { no_such_setting: "1" } });
  await expect(start).rejects.toThrow('unrecognized configuration parameter "no_such_setting"');
});

test("a server comes back from a crash under its address, with what was committed", async () => {
  await using server = await startEmbedded({ durable: false });
  await query(server.url, "create table kept as select 1 as n");
  for (const end of [server.crash, server.halt]) {
    await end();
    await expect(query(server.url, "select 1")).rejects.toThrow("ECONNREFUSED");
    await server.start();
    expect(await query(server.url, "select n from kept")).toEqual([{ n: 1 }]);
  }
});

test("a standby streams from the server, and takes writes once it is promoted", async () => {
  await using server = await startEmbedded({ durable: false });
  const standby = await server.startStandby();
  await query(server.url, "create table kept as select 1 as n");
  await expect
    .poll(() => query(standby.url, "select 1 from pg_class where relname = 'kept'"))
    .toHaveLength(1);
  await expect(query(standby.url, "insert into kept values (2)")).rejects.toThrow("read-only");
  await server.crash();
  await standby.promote();
  await query(standby.url, "insert into kept values (2)");
  expect(await query(standby.url, "select n from kept")).toEqual([{ n: 1 }, { n: 2 }]);
});

test.each(["SIGINT", "SIGTERM", "SIGKILL"] as const)(
  "nothing is left running when the process that started it ends by %s",
  async (signal) => {
    const script = `import { startEmbedded } from "./embedded.ts";
      console.log((await startEmbedded({ durable: false })).url);
      setInterval(() => undefined, 1_000);`;
    const args = ["--import", "tsx", "--input-type=module", "--eval", script];
    const cwd = fileURLToPath(new URL(".", import.meta.url));
    const parent = spawn(process.execPath, args, { cwd, stdio: ["ignore", "pipe", "inherit"] });
    const [url] = await once(createInterface({ input: parent.stdout }), "line");
    const port = Number(new URL(String(url)).port);
    expect(await answers(port)).toBe(true);
    parent.kill(signal);
    await once(parent, "exit");
    while (await answers(port)) await sleep(20);
  },
);

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const settle = (value: boolean) => {
      socket.destroy();
      resolve(value);
    };
    socket.once("connect", () => settle(true)).once("error", () => settle(false));
  });
}
