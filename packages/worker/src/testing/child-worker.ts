import { defineTask } from "@venturi/core";
import { PostgresStore } from "@venturi/store-postgres";
import * as v from "valibot";
import { Worker } from "../index.ts";
import type { ChildOptions } from "./child-process.ts";

/**
 * A worker as a process of its own. Its only argument is `ChildOptions` as JSON; it writes a line for each thing that
 * happens: `ready` when its first claim has been answered, `started <job id>`, `stopped`.
 */
const options: ChildOptions = JSON.parse(process.argv[2] ?? "{}");
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const payload = v.object({ n: v.number() });

const store = await PostgresStore.connect({ connectionString: options.url });
const worker = new Worker(store, options.worker).register(
  defineTask({ kind: options.kind, payload }),
  async (_, ctx) => {
    say(`started ${ctx.id}`);
    if (options.isPoison) process.kill(process.pid, "SIGKILL");
    const unblockAt = performance.now() + (options.blockMs ?? 0);
    while (performance.now() < unblockAt);
    await new Promise((resolve) => setTimeout(resolve, options.handlerMs));
  },
);
const controller = new AbortController();
process.on("SIGTERM", () => controller.abort());
const running = worker.run({ signal: controller.signal });
say("ready");
const { unreleased } = await running;
await store.close();
say(`stopped ${unreleased.length}`);
