import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { TcpProxy } from "./tcp-proxy.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** A server that answers everything with its name and what it got. */
async function echo(name: string) {
  const received: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("data", (data) => {
      received.push(String(data));
      socket.write(`${name}:${data}`);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(async () => {
    server.close();
    for (const socket of sockets) socket.destroy();
    await once(server, "close");
  });
  return { url: `postgres://127.0.0.1:${(server.address() as AddressInfo).port}/jobs`, received };
}

async function proxyBefore(url: string): Promise<TcpProxy> {
  const proxy = await TcpProxy.before(url);
  closing.push(() => proxy.close());
  return proxy;
}

function client(way: { readonly url: string }) {
  const { hostname, port } = new URL(way.url);
  const socket = connect(Number(port), hostname);
  let heard = "";
  socket.on("error", () => undefined);
  socket.on("data", (data) => {
    heard += data;
  });
  closing.push(async () => socket.destroy());
  return {
    socket,
    closed: new Promise<void>((resolve) => socket.once("close", () => resolve())),
    heard: () => heard,
    /** Sends, waits for an answer, and tells all that was heard. */
    async ask(text: string): Promise<string> {
      socket.write(text);
      await once(socket, "data");
      return heard;
    },
  };
}

test("what passes is forwarded both ways, and connections are counted", async () => {
  const { url } = await echo("a");
  const proxy = await proxyBefore(url);
  expect(new URL(proxy.url).pathname).toBe("/jobs");
  const one = client(proxy);
  expect(await one.ask("1")).toBe("a:1");
  expect([proxy.accepted, proxy.open]).toEqual([1, 1]);
});

test("refused connections are reset, old and new ones, until others pass", async () => {
  const proxy = await proxyBefore((await echo("a")).url);
  const old = client(proxy);
  await old.ask("1");
  proxy.mode = "refuse";
  await old.closed;
  await client(proxy).closed;
  expect([proxy.accepted, proxy.open]).toEqual([2, 0]);
  proxy.mode = "pass";
  expect(await client(proxy).ask("2")).toBe("a:2");
});

test("what is swallowed arrives when the network is back", async () => {
  const server = await echo("a");
  const proxy = await proxyBefore(server.url);
  const one = client(proxy);
  await one.ask("1");
  proxy.mode = "swallow";
  one.socket.write("2");
  // Had it been forwarded, it would have arrived before what goes there on its own.
  expect(await client(server).ask("3")).toBe("a:3");
  expect(server.received).toEqual(["1", "3"]);
  expect(proxy.held).toBe(1);
  proxy.mode = "pass";
  await once(one.socket, "data");
  expect(one.heard()).toBe("a:1a:2");
  expect(proxy.held).toBe(0);
});

test("a client that goes away while all is swallowed is no longer open", async () => {
  const proxy = await proxyBefore((await echo("a")).url);
  const one = client(proxy);
  await one.ask("1");
  proxy.mode = "swallow";
  one.socket.destroy();
  await expect.poll(() => proxy.open).toBe(0);
});

test("what is delayed arrives in order, also what comes after the delay has ended", async () => {
  const proxy = await proxyBefore((await echo("a")).url);
  const one = client(proxy);
  await one.ask("1");
  proxy.mode = "delay";
  const from = performance.now();
  expect(await one.ask("2")).toBe("a:1a:2");
  // Late on the way there and on the way back.
  expect(performance.now() - from).toBeGreaterThan(250);
  one.socket.write("3");
  proxy.mode = "pass";
  one.socket.write("4");
  await expect.poll(one.heard).toMatch(/3.*4$/);
});

test("lost replies: the server has got the request, the client hears of a reset alone", async () => {
  const server = await echo("a");
  const proxy = await proxyBefore(server.url);
  const one = client(proxy);
  await one.ask("1");
  proxy.mode = "lose-replies";
  one.socket.write("2");
  await one.closed;
  expect(server.received).toEqual(["1", "2"]);
  expect(one.heard()).toBe("a:1");
});

test("half-open connections stay with their client, and carry nothing any more", async () => {
  const server = await echo("a");
  const proxy = await proxyBefore(server.url);
  const one = client(proxy);
  await one.ask("1");
  proxy.halfOpen();
  one.socket.write("2");
  expect(await client(proxy).ask("3")).toBe("a:3");
  expect(server.received).toEqual(["1", "3"]);
  expect([one.socket.destroyed, proxy.open]).toEqual([false, 2]);
});

test("chance may pick which connections are cut, and an address may move", async () => {
  const proxy = await proxyBefore((await echo("a")).url);
  const [one, two] = [client(proxy), client(proxy)];
  await one.ask("1");
  await two.ask("2");
  const picks = [true, false];
  proxy.cut(() => picks.shift() ?? false);
  await Promise.race([one.closed, two.closed]);
  expect(proxy.open).toBe(1);
  proxy.moveTo((await echo("b")).url);
  await Promise.all([one.closed, two.closed]);
  expect(await client(proxy).ask("3")).toBe("b:3");
});
