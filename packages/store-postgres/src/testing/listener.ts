// A process that listens until its input ends; nothing but the subscription could keep it alive after that.
import { createInterface } from "node:readline";
import pg from "pg";
import { subscribe } from "../notifier.ts";

const [connectionString, probeMs = "5000"] = process.argv.slice(2);
const say = (line: string) => process.stdout.write(`${line}\n`);
const subscription = subscribe(
  {
    createClient: () => {
      say("connecting");
      return new pg.Client({ connectionString });
    },
    channel: '"venturi"',
    probeMs: Number(probeMs),
  },
  () => say("woken"),
);
for await (const _ of createInterface({ input: process.stdin }));
await subscription.close();
say("closed");
