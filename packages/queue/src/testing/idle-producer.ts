// A process that only produces: it idles while its connection is ended, then enqueues when told to.
import { createInterface } from "node:readline";
import pg from "pg";
import { Queue } from "../queue.ts";
import { Count } from "./tasks.ts";

const [connectionString, application_name] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString, application_name });
const queue = new Queue(pool);
const say = (line: string) => process.stdout.write(`${line}\n`);
await queue.enqueue(Count({ n: 1 }));
pool.once("remove", () => say("lost"));
say("ready");
for await (const _ of createInterface({ input: process.stdin })) {
  say(await queue.enqueue(Count({ n: 2 })));
}
await pool.end();
