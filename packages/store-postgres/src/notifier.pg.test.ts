import { isDeepStrictEqual } from "node:util";
import type { Subscription } from "@venturi/core";
import { expectNoWarnings, testDatabase } from "@venturi-tooling/testing";
import { TcpProxy } from "@venturi-tooling/testing/tcp-proxy";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { afterEach, describe, expect, it } from "vitest";
import { type NotifierOptions, subscribe } from "./notifier.ts";
import { PostgresStore } from "./postgres-store.ts";
import { type Child, startChild } from "./testing/child.ts";
import { recordingLogger } from "./testing/recording-logger.ts";
import { enqueue, job } from "./testing/store-fixture.ts";
import { until } from "./testing/until.ts";

const { url, pool } = await testDatabase();
expectNoWarnings();
const store = new PostgresStore({ pool });

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const some of open.splice(0).reverse()) await some.close();
});

async function proxied(): Promise<TcpProxy> {
  const proxy = await TcpProxy.before(url);
  open.push(proxy);
  return proxy;
}

/** A subscription that counts its wakes, over connections of a name of its own. */
function listen(
  name: string,
  options: Partial<NotifierOptions> & { readonly through?: string } = {},
) {
  const { logger, records } = recordingLogger();
  const state = { wakes: 0, attempts: [] as number[], records };
  const createClient = () => {
    state.attempts.push(performance.now());
    return new pg.Client({ connectionString: options.through ?? url, application_name: name });
  };
  const subscription: Subscription = subscribe(
    { createClient, channel: '"venturi"', ...options },
    () => {
      state.wakes += 1;
    },
    logger,
  );
  open.push(subscription);
  return Object.assign(state, { subscription });
}

const notify = () => pool.query("notify venturi");

const backends = async (name: string) =>
  (
    await pool.query(
      "select * from pg_stat_activity where datname = current_database() and application_name = $1",
      [name],
    )
  ).rows;

const kill = (name: string) =>
  pool.query(
    "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and application_name = $1",
    [name],
  );

describe("a subscription wakes", () => {
  it("once it listens, and on every notification from then on", async () => {
    const state = listen("wakes");
    await state.subscription.listening;
    expect(state.wakes).toBe(1);
    await enqueue(store, job("k"));
    await until(() => state.wakes === 2);
    await notify();
    await until(() => state.wakes === 3);
  });

  it("for its own prefix alone", async () => {
    const state = listen("own prefix");
    await state.subscription.listening;
    await pool.query("notify venturi_2; notify other");
    await notify();
    await until(() => state.wakes === 2);
  });

  it("after its connection was killed: for what it missed, and for what comes", async () => {
    const state = listen("killed");
    await state.subscription.listening;
    for (let round = 0; round < 4; round += 1) {
      const before = state.wakes;
      await kill("killed");
      await notify();
      await until(() => state.wakes > before, 5_000);
      const since = state.wakes;
      await notify();
      await until(() => state.wakes > since);
    }
    expect(await backends("killed")).toHaveLength(1);
  });

  it("when its first attempts failed and a later one did not", async () => {
    const proxy = await proxied();
    proxy.mode = "refuse";
    const state = listen("late", { through: proxy.url });
    await until(() => proxy.accepted >= 3);
    proxy.mode = "pass";
    await state.subscription.listening;
    expect(state.wakes).toBe(1);
    await notify();
    await until(() => state.wakes === 2);
  });

  it("when its first client could not even be made", async () => {
    let attempts = 0;
    const state = listen("unmade", {
      createClient: () => {
        attempts += 1;
        if (attempts < 3) throw new Error("not yet");
        return new pg.Client({ connectionString: url });
      },
    });
    await state.subscription.listening;
    expect(state.wakes).toBe(1);
  });
});

describe("a half-open connection", () => {
  it("is found out within two probes, and replaced", async () => {
    const proxy = await proxied();
    const probeMs = 200;
    const state = listen("half-open", { through: proxy.url, probeMs });
    await state.subscription.listening;
    proxy.halfOpen();
    const frozenAt = performance.now();
    await notify();
    await until(() => state.wakes === 2);
    expect(performance.now() - frozenAt).toBeLessThan(2 * probeMs + 100 + 500);
    await notify();
    await until(() => state.wakes === 3);
    expect(proxy.open).toBe(1);
  });

  it("that never was more than that is given up, one socket at a time", async () => {
    const proxy = await proxied();
    proxy.mode = "swallow";
    const state = listen("swallowed", { through: proxy.url, probeMs: 100 });
    for (let accepted = 1; accepted < 4; accepted += 1) {
      await until(() => proxy.accepted > accepted);
      expect(proxy.open).toBeLessThanOrEqual(1);
    }
    proxy.mode = "pass";
    await state.subscription.listening;
  });
});

it("the connection is idle outside a transaction whenever one looks", async () => {
  const state = listen("idle", { probeMs: 200 });
  await state.subscription.listening;
  const states: string[] = [];
  /** When each of its transactions was seen first. */
  const transactions = new Map<number, number>();
  let longestMs = 0;
  for (let look = 0; look < 200; look += 1) {
    await notify();
    for (const { state, xact_start } of await backends("idle")) {
      states.push(state);
      if (xact_start === null) continue;
      const firstSeenAt = transactions.get(Number(xact_start)) ?? performance.now();
      transactions.set(Number(xact_start), firstSeenAt);
      longestMs = Math.max(longestMs, performance.now() - firstSeenAt);
    }
  }
  expect(states.length).toBeGreaterThan(100);
  expect(states.filter((state) => state !== "idle" && state !== "active")).toEqual([]);
  // The server reads notifications in a transaction of its own, also of a connection that is idle, and at once ends it.
  expect(longestMs).toBeLessThan(50);
  const none = { state: "idle", xact_start: null, backend_xmin: null };
  await until(async () => {
    const [backend] = await backends("idle");
    return isDeepStrictEqual(
      Object.fromEntries(Object.keys(none).map((key) => [key, backend?.[key]])),
      none,
    );
  });
});

describe("while there is no connection", () => {
  it("attempts grow apart, and an operator is told once, without secrets", async () => {
    const proxy = await proxied();
    proxy.mode = "refuse";
    const state = listen("outage", { through: proxy.url, firstDelayMs: 20, lastDelayMs: 320 });
    await until(() => state.attempts.length === 12, 30_000);
    const gaps = state.attempts.slice(1).map((at, index) => at - (state.attempts[index] as number));
    for (const [index, least] of [10, 20, 40, 80, 160, 160, 160].entries())
      expect(gaps[index]).toBeGreaterThanOrEqual(least - 2);
    expect(Math.max(...gaps)).toBeLessThan(320 + 300);
    expect(state.records.map(({ level }) => level)).toEqual(["warn"]);
    const told = JSON.stringify(state.records);
    expect(told).not.toContain(new URL(url).password);
    expect(told.length).toBeLessThan(300);
    proxy.mode = "pass";
    await state.subscription.listening;
    expect(state.records.map(({ level }) => level)).toEqual(["warn", "info"]);
  });

  it("one that comes up only to be lost at once counts as none", async () => {
    const state = listen("flapping", { firstDelayMs: 20, lastDelayMs: 10_000 });
    for (let round = 1; round <= 5; round += 1) {
      await until(() => state.wakes === round);
      await kill("flapping");
    }
    const [, second = 0, , , last = 0] = state.attempts;
    expect(last - second).toBeGreaterThan(20 + 40 + 80);
    expect(state.records.map(({ level }) => level)).toEqual(["warn", "info"]);
  });

  it("an operator is told again when the window is over", async () => {
    const proxy = await proxied();
    proxy.mode = "refuse";
    const state = listen("window", { through: proxy.url, lastDelayMs: 50, logWindowMs: 400 });
    await until(() => state.records.length === 3);
    expect(state.attempts.length).toBeGreaterThan(6);
  });
});

describe("close", () => {
  const children: Child[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.process.kill("SIGKILL");
  });

  async function listening(proxy: TcpProxy, probeMs = 5_000): Promise<Child> {
    const child = startChild(new URL("./testing/listener.ts", import.meta.url), [
      proxy.url,
      String(probeMs),
    ]);
    children.push(child);
    expect(await child.next()).toBe("connecting");
    return child;
  }

  /** Ends the input of the process, which must then end by itself, and soon. */
  async function expectExit(child: Child): Promise<void> {
    const endedAt = performance.now();
    expect(await child.end()).toBe(0);
    expect(performance.now() - endedAt).toBeLessThan(2_500);
  }

  it("leaves nothing that keeps a process alive", async () => {
    const proxy = await proxied();
    const child = await listening(proxy);
    expect(await child.next()).toBe("woken");
    await expectExit(child);
    expect(proxy.open).toBe(0);
  });

  it("nor while a connection is half-open, or has only begun", async () => {
    const [frozen, swallowing] = [await proxied(), await proxied()];
    swallowing.mode = "swallow";
    const both = await Promise.all([listening(frozen), listening(swallowing)]);
    expect(await both[0]?.next()).toBe("woken");
    frozen.halfOpen();
    await until(() => swallowing.accepted === 1);
    await Promise.all(both.map(expectExit));
  });

  it("nor after half-open connections have been replaced", async () => {
    const proxy = await proxied();
    const child = await listening(proxy, 100);
    for (const line of ["woken", "connecting", "woken", "connecting"]) {
      if (line === "connecting") proxy.halfOpen();
      expect(await child.next()).toBe(line);
    }
    await expectExit(child);
  });

  it("nor while it waits to connect again", async () => {
    const proxy = await proxied();
    proxy.mode = "refuse";
    const child = await listening(proxy);
    for (let attempt = 0; attempt < 4; attempt += 1) expect(await child.next()).toBe("connecting");
    await expectExit(child);
  });

  it("lets listening come to its end, and nobody be woken any more", async () => {
    const proxy = await proxied();
    proxy.mode = "swallow";
    const state = listen("closed", { through: proxy.url });
    await state.subscription.close();
    await state.subscription.listening;
    await state.subscription.close();
    proxy.mode = "pass";
    expect(state.wakes).toBe(0);
    await until(async () => (await backends("closed")).length === 0);
  });
});

describe("the store", () => {
  it("listens with its own settings, for as many as ask, until it is closed", async () => {
    const named = new URL(url);
    named.searchParams.set("application_name", "store");
    const own = await PostgresStore.connect({ connectionString: named.href });
    expect(own.capabilities.notifications).toBe(true);
    const wakes = [0, 0];
    const all = wakes.map((_, index) =>
      own.listen({ onWake: () => (wakes[index] = (wakes[index] ?? 0) + 1) }),
    );
    await Promise.all(all.map(({ listening }) => listening));
    await notify();
    await until(() => wakes.every((count) => count === 2));
    await all[0]?.close();
    await notify();
    await until(() => wakes[1] === 3);
    expect(wakes[0]).toBe(2);
    await own.close();
    await until(async () => (await backends("store")).length === 0);
  });

  it("listens elsewhere where it is told to, also over Kysely", async () => {
    const direct = new URL(url);
    direct.searchParams.set("application_name", "elsewhere");
    const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
    const made = new PostgresStore({ db, listenConnectionString: direct.href });
    expect(made.capabilities.notifications).toBe(true);
    let woken = 0;
    await made.listen({ onWake: () => (woken += 1) }).listening;
    expect(await backends("elsewhere")).toHaveLength(1);
    await enqueue(made, job("k"));
    await until(() => woken === 2);
    await made.close();
  });

  it("opens no connection where it is told not to listen", async () => {
    const some = new PostgresStore({ pool, listen: false });
    expect(some.capabilities.notifications).toBe(false);
    let woken = 0;
    const subscription = some.listen({ onWake: () => (woken += 1) });
    await subscription.listening;
    await subscription.close();
    expect(woken).toBe(0);
  });
});
