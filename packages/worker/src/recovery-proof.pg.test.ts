import { Backoff, defineTask, type JournalEntry } from "@venturi/core";
import { Queue } from "@venturi/queue";
import { PostgresStore } from "@venturi/store-postgres";
import { expectInvariants, testDatabase } from "@venturi-tooling/testing";
import * as v from "valibot";
import { afterAll, expect, test } from "vitest";
import { WorkerProcess } from "./testing/child-process.ts";
import { until } from "./testing/signals.ts";

const kills = Number(process.env["RECOVERY_PROOF_KILLS"] ?? "8");
const processes = Math.min(10, Math.ceil(kills / 2));
const workerTimeoutMs = 2_000;

const database = await testDatabase();
const store = await PostgresStore.connect({ connectionString: database.url });
const queue = new Queue(store);
afterAll(() => store.close());

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

test(
  `a killed worker's job is recovered within workerTimeout + 2 s at the 99th percentile over ${kills} kills, and none while its worker beats`,
  async () => {
    const Task = defineTask({
      kind: "kill_proof",
      payload: v.object({ n: v.number() }),
      backoff: new Backoff({ base: 1, cap: 1 }),
    });
    const ids = await queue.enqueueMany(
      Array.from({ length: processes + 2 }, (_, n) => Task({ n })),
    );
    const killed = new Set<string>();
    const latencies: number[] = [];
    let begun = 0;
    const start = (name: string) =>
      new WorkerProcess({
        url: database.url,
        kind: Task.kind,
        handlerMs: 600_000,
        backoffMs: 1,
        worker: { workerTimeout: workerTimeoutMs, concurrency: 1, backstop: null, name },
      });
    const measure = async (child: WorkerProcess, name: string): Promise<void> => {
      await child.said("started", 120_000);
      const [, id = "", run = ""] =
        child.lines.find((line) => line.startsWith("started"))?.split(" ") ?? [];
      await wait(Math.random() * workerTimeoutMs);
      killed.add(name);
      const at = Date.now();
      await child.kill("SIGKILL");
      let entry: JournalEntry | undefined;
      const isRecovered = async () => {
        entry = (await queue.journal(id)).find(({ runNo }) => runNo === Number(run));
        return entry !== undefined;
      };
      await until(isRecovered, { withinMs: 60_000, everyMs: 100, what: `${name} is noticed` });
      expect(entry).toMatchObject({ outcome: "stale-recovered", worker: name });
      latencies.push((entry?.recordedAt.getTime() ?? Number.NaN) - at);
    };
    const killAgainAndAgain = async (slot: number): Promise<void> => {
      while (begun < kills) {
        begun += 1;
        const name = `${slot}:${begun}`;
        await measure(start(name), name);
      }
    };
    // Of what are many workers, most are alive at any time: these are never killed.
    const watchers = Array.from({ length: 2 }, (_, n) => start(`watcher ${n}`));
    for (const watcher of watchers) await watcher.said("started", 120_000);
    await Promise.all(Array.from({ length: processes }, (_, slot) => killAgainAndAgain(slot)));
    for (const watcher of watchers) await watcher.kill("SIGKILL");
    const journals = (await Promise.all(ids.map((id) => queue.journal(id)))).flat();
    const recovered = journals.filter(({ outcome }) => outcome === "stale-recovered");
    latencies.sort((a, b) => a - b);
    const percentile = (share: number) =>
      latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0;
    const [median, high, most] = [percentile(0.5), percentile(0.99), percentile(1)];
    console.log(
      `${latencies.length} kills among ${processes + 2} workers: recovered after ${median} ms (median), ${high} ms (99th percentile), ${most} ms (most); ${recovered.length} recoveries`,
    );
    expect(high).toBeLessThan(workerTimeoutMs + 2_000);
    // Each recovery is that of a killed worker, and there is one for each.
    expect(recovered.filter(({ worker }) => !killed.has(worker ?? ""))).toEqual([]);
    expect(recovered).toHaveLength(kills);
    await expectInvariants(database.pool);
  },
  120_000 + kills * 10_000,
);
