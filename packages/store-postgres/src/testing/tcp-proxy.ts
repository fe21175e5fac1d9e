import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/**
 * How a proxy treats what it gets: passes it on, keeps connections open without passing anything on (as a network
 * does that has lost its way), or closes them.
 */
type ProxyMode = "passes" | "swallows" | "closes";

/** A way to a database that fails on demand. */
export interface TcpProxy {
  readonly url: string;
  /** How connections are treated from now on, those that are open included. */
  mode: ProxyMode;
  /** How many connections have been made to it. */
  readonly accepted: number;
  /** How many of them their client has not closed. */
  readonly open: number;
  /** Closes all connections that are open. */
  cut(): void;
  /** Passes nothing on any more over the connections that are open, as if their way had been lost. */
  freeze(): void;
  close(): Promise<void>;
}

export async function tcpProxy(databaseUrl: string): Promise<TcpProxy> {
  const target = new URL(databaseUrl);
  const clients = new Set<Socket>();
  const upstreams = new Set<Socket>();
  const frozen = new WeakSet<Socket>();
  const server = createServer((client) => {
    proxy.accepted += 1;
    if (proxy.mode === "closes") {
      client.on("error", () => undefined);
      client.destroy();
      return;
    }
    const upstream = connect(Number(target.port || 5432), target.hostname);
    track(clients, client);
    track(upstreams, upstream);
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
    const passes = () => proxy.mode === "passes" && !frozen.has(client);
    client.on("data", (data) => passes() && upstream.write(data));
    upstream.on("data", (data) => passes() && client.write(data));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(databaseUrl);
  url.hostname = "127.0.0.1";
  url.port = String((server.address() as AddressInfo).port);
  const proxy = {
    url: url.href,
    mode: "passes" as ProxyMode,
    accepted: 0,
    get open() {
      return clients.size;
    },
    cut: () => {
      for (const socket of clients) socket.destroy();
    },
    freeze: () => {
      for (const socket of clients) frozen.add(socket);
    },
    close: async () => {
      for (const socket of [...clients, ...upstreams]) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
  return proxy;
}

function track(sockets: Set<Socket>, socket: Socket): void {
  sockets.add(socket);
  socket.on("error", () => undefined);
  socket.on("close", () => sockets.delete(socket));
}
