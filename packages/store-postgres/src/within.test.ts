import { MessageChannel } from "node:worker_threads";
import { expect, test } from "vitest";
import type { PgClientLike, PgPoolLike } from "./pg-like.ts";
import { connectWithin, within } from "./within.ts";

const soon = { makingMs: 20, waitingMs: 20 };
const turn = (ms = 0) => new Promise((resolve) => setTimeout(resolve, ms));

/** A pool whose next connection comes when the test says so. */
function slowPool(makes: boolean) {
  const state = { released: 0, ended: 0 };
  const client: PgClientLike = {
    query: async () => ({ rows: [] }),
    on: () => undefined,
    removeListener: () => undefined,
    release: () => {
      state.released += 1;
    },
  };
  let come: (client: PgClientLike) => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const destroy = () => {
    state.ended += 1;
    fail(new Error("Connection terminated unexpectedly"));
  };
  const pool = {
    _clients: [{ connection: { stream: { destroy: () => expect.unreachable() } } }] as object[],
    query: async () => ({ rows: [] }),
    on: () => undefined,
    end: async () => undefined,
    connect: () => {
      if (makes) pool._clients.push({ connection: { stream: { destroy } } });
      return new Promise<PgClientLike>((resolve, reject) => {
        [come, fail] = [resolve, reject];
      });
    },
  } satisfies PgPoolLike & { _clients: object[] };
  return { pool, client, state, come: () => come(client), fail: (error: Error) => fail(error) };
}

test("what comes in time is what was asked for", async () => {
  const { pool, client, come, state } = slowPool(true);
  const lent = connectWithin(pool, { makingMs: 60_000, waitingMs: 60_000 });
  come();
  expect(await lent).toBe(client);
  expect(state).toEqual({ released: 0, ended: 0 });
});

test("why no connection came about is what the pool says", async () => {
  const { pool, fail } = slowPool(true);
  const lent = connectWithin(pool, { makingMs: 60_000, waitingMs: 60_000 });
  fail(new Error("password authentication failed"));
  await expect(lent).rejects.toThrow("password authentication failed");
});

test("a connection that is forgotten while it is made is given up and ended, and no other", async () => {
  const { pool, state } = slowPool(true);
  const lent = connectWithin(pool, { makingMs: 20, waitingMs: 60_000 });
  await expect(lent).rejects.toThrow("timeout exceeded when trying to connect");
  await turn();
  expect(state).toEqual({ released: 0, ended: 1 });
});

test("while others use all there are nothing is ended, and what comes too late goes back", async () => {
  const { pool, come, state } = slowPool(false);
  const lent = connectWithin(pool, { makingMs: 0, waitingMs: 20 });
  await expect(lent).rejects.toThrow("timeout exceeded when trying to connect");
  come();
  await turn();
  expect(state).toEqual({ released: 1, ended: 0 });
});

test("a pool that does not say what it makes is given up as well", async () => {
  const { pool, come, state } = slowPool(true);
  const { _clients, ...plain } = pool;
  const silent = { ...plain, connect: () => pool.connect() };
  await expect(connectWithin(silent, soon)).rejects.toThrow("timeout exceeded");
  come();
  await turn();
  expect(state).toEqual({ released: 1, ended: 0 });
});

test("what arrived while the process stood still is read before it is given up", async () => {
  const { port1, port2 } = new MessageChannel();
  const answer = new Promise((resolve) => port1.once("message", resolve));
  const read = within(10, answer, new Error("too late"));
  port2.postMessage("here");
  const until = performance.now() + 50;
  while (performance.now() < until);
  expect(await read).toBe("here");
  port1.close();
});
