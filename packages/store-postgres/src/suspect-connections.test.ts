import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import type { PgClientLike, PgPoolLike } from "./pg-like.ts";
import { statement } from "./sql/statement.ts";
import { SuspectConnections } from "./suspect-connections.ts";

const [claim, beat] = [statement("claim", "select 1"), statement("beat", "select 1")];

/** A pool that lends out what idles, and else makes a connection. */
function poolWith(idle: string[]) {
  const ended: string[] = [];
  const clients = new Map<string, PgClientLike>();
  const events = new EventEmitter();
  const client = (name: string): PgClientLike => ({
    query: async () => ({ rows: [] }),
    on: () => undefined,
    removeListener: () => undefined,
    release: (broken) => void (broken ? ended.push(name) : idle.push(name)),
  });
  for (const name of idle) clients.set(name, client(name));
  const pool = Object.assign(events, {
    query: async () => ({ rows: [] }),
    end: async () => undefined,
    options: { max: 5 },
    connect: async () => {
      const name = idle.pop() ?? `new ${clients.size}`;
      const known = clients.get(name);
      if (known !== undefined) return known;
      const made = client(name);
      clients.set(name, made);
      events.emit("connect", made);
      return made;
    },
  }) as PgPoolLike;
  return {
    pool,
    ended,
    nameOf: (lent: PgClientLike) => [...clients].find(([, it]) => it === lent)?.[0],
  };
}

test("connections as old as one on which nobody answered are ended, not waited for", async () => {
  const { pool, ended, nameOf } = poolWith(["a", "b"]);
  const suspects = SuspectConnections.of(pool);
  suspects.learn(claim, new Error("Query read timeout"));
  const lent = await suspects.connect({});
  expect(nameOf(lent)).toBe("new 2");
  expect(ended).toEqual(["b", "a"]);
  lent.release();
  expect(await suspects.connect({})).toBe(lent);
});

test("other errors put nobody under suspicion", async () => {
  const { pool, ended, nameOf } = poolWith(["a"]);
  const suspects = SuspectConnections.of(pool);
  suspects.learn(claim, new Error("deadlock detected"));
  expect(suspects.isAny).toBe(false);
  expect(nameOf(await suspects.connect({}))).toBe("a");
  expect(ended).toEqual([]);
});

test("a statement that goes unanswered again and again is waited for twice as long each time, until it is answered", () => {
  const suspects = SuspectConnections.of(poolWith([]).pool);
  const timeout = new Error("Query read timeout");
  expect(suspects.patienceMs(claim)).toBe(8_000);
  suspects.learn(claim, timeout);
  suspects.learn(claim, timeout);
  expect(suspects.patienceMs(claim)).toBe(32_000);
  expect(suspects.patienceMs(beat)).toBe(8_000);
  for (let n = 0; n < 20; n += 1) suspects.learn(claim, timeout);
  expect(suspects.patienceMs(claim)).toBe(900_000);
  suspects.answered(beat);
  suspects.answered(claim);
  expect(suspects.patienceMs(claim)).toBe(8_000);
});

test("one that is shorter of time is waited for as long as it says, and from then on twice as long as well", () => {
  const suspects = SuspectConnections.of(poolWith([]).pool);
  const short = { ...beat, patienceMs: 2_000 };
  expect(suspects.patienceMs(short)).toBe(2_000);
  suspects.learn(short, new Error("Query read timeout"));
  expect(suspects.patienceMs(short)).toBe(4_000);
  suspects.answered(short);
  expect(suspects.patienceMs(short)).toBe(2_000);
});
