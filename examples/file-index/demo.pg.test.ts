import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type GeneratedTree, generateTree } from "./testing/generated-tree.ts";

const database = await testDatabase();
let tree: GeneratedTree;

beforeAll(async () => {
  tree = await generateTree(60, 50);
});
afterAll(() => tree.remove());

function startDemo(): { child: ChildProcess; output: Promise<string>; exit: Promise<unknown[]> } {
  const child = spawn(
    process.execPath,
    [
      "--conditions=@venturi/source",
      ...["--import", pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href],
      fileURLToPath(new URL("./demo.ts", import.meta.url)),
      tree.root,
    ],
    {
      env: { ...process.env, DATABASE_URL: database.url, PGAPPNAME: "file-index of the test" },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  return { child, output: text(child.stdout), exit: once(child, "exit") };
}

/** Waits until the server has forgotten the connections of a process, which it does a moment after its end. */
async function noOtherConnections(): Promise<void> {
  await expect.poll(otherConnections, { timeout: 20_000 }).toEqual([]);
}

/** Connections that the demo and its workers left behind; those of the test itself have no name. */
async function otherConnections(): Promise<string[]> {
  const { rows } = await database.pool.query<{ name: string }>(
    `select application_name as name from pg_stat_activity
      where datname = current_database() and backend_type = 'client backend'
        and application_name <> ''`,
  );
  return rows.map(({ name }) => name);
}

it("Ctrl-C drains the workers and leaves nothing running and nothing claimed", async () => {
  const { child, output, exit } = startDemo();
  const isIndexing = async () => {
    const { rows } = await database.pool.query(
      "select count(*)::int as entries from venturi_journal",
    );
    return rows[0].entries > 100;
  };
  while (!(await isIndexing())) expect(child.exitCode).toBeNull();
  child.kill("SIGINT");
  expect(await exit).toEqual([130, null]);
  expect(await output).toContain("stopping: runs may finish, the rest stays in the database");
  await noOtherConnections();
  const { rows } = await database.pool.query(
    "select count(*) filter (where claimed_by is not null)::int as claimed from venturi_queue",
  );
  expect(rows).toEqual([{ claimed: 0 }]);
  await expectInvariants(database.pool);
}, 60_000);

it("indexes everything, says how it went, and names what was dead and why", async () => {
  const { output, exit } = startDemo();
  const said = await output;
  expect(await exit).toEqual([0, null]);
  const indexed = tree.files.size.toLocaleString("en-US");
  expect(said).toContain(`indexed   ${indexed} files`);
  expect(said).toMatch(/jobs in [\d.]+ s, [\d,]+ jobs\/s/);
  expect(said).toContain("vanishes-on-purpose.txt: it has vanished");
  expect(said).toContain("becomes-a-folder-on-purpose.txt: it has become a folder");
  expect(said).toMatch(/outcomes .*completed, 2 dead/);
  await noOtherConnections();
  await expectInvariants(database.pool);
}, 60_000);

it("killed, it takes its workers with it", async () => {
  const { child, exit } = startDemo();
  const liveWorkers = async () => {
    const { rows } = await database.pool.query(
      "select count(*)::int as live from venturi_workers where stopping_at is null",
    );
    return rows[0].live;
  };
  while ((await liveWorkers()) < 2) expect(child.exitCode).toBeNull();
  child.kill("SIGKILL");
  expect(await exit).toEqual([null, "SIGKILL"]);
  while ((await liveWorkers()) > 0) await sleep(20);
  await noOtherConnections();
  await expectInvariants(database.pool);
}, 60_000);
