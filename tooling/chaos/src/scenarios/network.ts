import { setTimeout as sleep } from "node:timers/promises";
import { type ProxyMode, TcpProxy } from "@venturi-tooling/testing/tcp-proxy";
import type { Stage } from "../stage.ts";
import type { Scenario } from "./scenario.ts";

/** What is led through the proxy; the rest goes straight to the server. */
type Way = "pools" | "listening";

/** A scenario whose processes reach the database through a proxy. */
function network(
  scenario: Omit<Scenario, "prepare" | "fault"> & {
    readonly way: Way;
    readonly spoil: (proxy: TcpProxy, stage: Stage) => Promise<void>;
  },
): Scenario {
  const { way, spoil, ...rest } = scenario;
  const proxies = new WeakMap<Stage, TcpProxy>();
  return {
    ...rest,
    async prepare(stage) {
      const proxy = await TcpProxy.before(stage.url);
      proxies.set(stage, proxy);
      stage.atEnd(() => proxy.close());
      const { url } = proxy;
      if (way === "listening") stage.route({ worker: { listenUrl: url } });
      else stage.route({ worker: { url, listenUrl: stage.url }, producer: { url } });
    },
    async fault(stage) {
      const proxy = proxies.get(stage);
      if (proxy === undefined) throw new Error("the proxy has not been prepared");
      await spoil(proxy, stage);
    },
  };
}

/** Puts a proxy into a mode for the length of a fault. */
const inMode =
  (mode: ProxyMode) =>
  async (proxy: TcpProxy, { pace }: Stage): Promise<void> => {
    proxy.mode = mode;
    await sleep(pace.faultMs);
    proxy.mode = "pass";
  };

async function cutAgainAndAgain(proxy: TcpProxy, { pace, random }: Stage): Promise<void> {
  const until = performance.now() + pace.faultMs;
  while (performance.now() < until) {
    proxy.cut(() => random() < 0.3);
    await sleep(random() * 300);
  }
}

async function halfOpen(proxy: TcpProxy, { pace }: Stage): Promise<void> {
  proxy.halfOpen();
  await sleep(pace.faultMs);
}

export const networkScenarios: readonly Scenario[] = [
  network({
    name: "network-cuts",
    summary: "connections are cut several times a second, wherever a statement happens to be",
    isQuick: true,
    way: "pools",
    spoil: cutAgainAndAgain,
  }),
  network({
    name: "network-refused",
    summary: "all connections are reset, and new ones refused",
    way: "pools",
    spoil: inMode("refuse"),
  }),
  network({
    name: "network-slow",
    summary: "everything arrives 150 ms late, in both directions",
    way: "pools",
    spoil: inMode("delay"),
  }),
  network({
    name: "network-gone",
    summary: "connections stay open and nothing goes through, then it goes on",
    way: "pools",
    spoil: inMode("swallow"),
  }),
  network({
    name: "network-half-open",
    summary: "the server's side of all connections is gone, and nobody tells the clients",
    way: "pools",
    spoil: halfOpen,
  }),
  network({
    name: "listening-cuts",
    summary: "connections that listen are cut several times a second",
    way: "listening",
    spoil: cutAgainAndAgain,
  }),
  network({
    name: "listening-slow",
    summary: "everything arrives 150 ms late on connections that listen, in both directions",
    way: "listening",
    spoil: inMode("delay"),
  }),
  network({
    name: "listening-gone",
    summary: "connections that listen stay open and hear nothing, then they go on",
    way: "listening",
    spoil: inMode("swallow"),
  }),
  network({
    name: "listening-half-open",
    summary: "the server's side of connections that listen is gone, and nobody tells the clients",
    way: "listening",
    spoil: halfOpen,
  }),
];
