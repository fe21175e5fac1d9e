import { Backoff, defineTask } from "@venturi/core";
import { PostgresStore } from "@venturi/store-postgres";
import { pooledStoreOptions, pooledWorkerOptions } from "@venturi-tooling/testing/pooler";
import pg from "pg";
import * as v from "valibot";
import { Worker } from "../index.ts";
import type { ChildOptions } from "./child-process.ts";

/**
 * A worker as a process of its own. Its only argument is `ChildOptions` as JSON; it writes a line for each thing that
 * happens: `ready` when its first claim has been answered, `started <job id> <run count>`, `stopped`.
 */
const options: ChildOptions = JSON.parse(process.argv[2] ?? "{}");
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const payload = v.object({ n: v.number() });

const pool = new pg.Pool({ connectionString: options.url });
const store = await PostgresStore.connect({
  connectionString: options.url,
  ...pooledStoreOptions(options.url),
});
const worker = new Worker(store, { ...pooledWorkerOptions(), ...options.worker }).register(
  defineTask({
    kind: options.kind,
    payload,
    ...(options.backoffMs === undefined
      ? {}
      : { backoff: new Backoff({ base: options.backoffMs, cap: options.backoffMs }) }),
  }),
  async (_, ctx) => {
    say(`started ${ctx.id} ${ctx.runCount}`);
    if (options.isPoison) process.kill(process.pid, "SIGKILL");
    const unblockAt = performance.now() + (options.blockMs ?? 0);
    while (performance.now() < unblockAt);
    await new Promise((resolve) => setTimeout(resolve, options.handlerMs));
    if (!options.isWriting) return;
    const client = await pool.connect();
    try {
      await client.query("begin");
      await client.query("insert into written values ($1, $2)", [ctx.id, ctx.runCount]);
      await ctx.complete(client);
      await client.query("commit");
    } catch (error) {
      await client.query("rollback");
      throw error;
    } finally {
      client.release();
    }
  },
);
const controller = new AbortController();
process.on("SIGTERM", () => controller.abort());
const running = worker.run({ signal: controller.signal });
say("ready");
const { unreleased } = await running;
await store.close();
await pool.end();
say(`stopped ${unreleased.length}`);
