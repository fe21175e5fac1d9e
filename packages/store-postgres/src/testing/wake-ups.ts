import { once } from "node:events";
import { openSession } from "@venturi-tooling/testing";
import type pg from "pg";

/** Counts the wake-ups that a queue sends. */
export interface WakeUps {
  /** How many were sent by a piece of work: all of them have arrived when this resolves. */
  sentBy(work: () => Promise<unknown>): Promise<number>;
  close(): Promise<void>;
}

const marker = "venturi_marker";

export async function countWakeUps(pool: pg.Pool): Promise<WakeUps> {
  const client = await openSession(pool);
  let heard: string[] = [];
  client.on("notification", ({ channel }) => heard.push(channel));
  await client.query(`listen venturi; listen ${marker}`);
  /** Notifications arrive in the order of the commits that sent them. */
  const hearAll = async () => {
    await pool.query(`notify ${marker}`);
    while (!heard.includes(marker)) await once(client, "notification");
    const all = heard.filter((channel) => channel !== marker);
    heard = [];
    return all.length;
  };
  return {
    async sentBy(work) {
      await hearAll();
      await work();
      return hearAll();
    },
    close: () => client.end(),
  };
}
