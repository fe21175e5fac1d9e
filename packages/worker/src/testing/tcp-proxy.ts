import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/**
 * How a proxy treats its connections. `pass`: forwards. `refuse`: closes them, and new ones at once. `swallow`: keeps
 * them open and forwards nothing, as a network that has gone does.
 */
type Mode = "pass" | "refuse" | "swallow";

/** Stands between a worker and its database, and takes the database away when a test says so. */
export class TcpProxy {
  readonly #server: Server;
  readonly #target: URL;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #mode: Mode = "pass";
  /** Connections that were tried. */
  attempts = 0;

  private constructor(server: Server, target: URL) {
    this.#server = server;
    this.#target = target;
  }

  /** A proxy before the server that a connection string names. */
  static async before(url: string): Promise<TcpProxy> {
    const server = createServer();
    const proxy = new TcpProxy(server, new URL(url));
    server.on("connection", (socket) => proxy.#accept(socket));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return proxy;
  }

  /** The connection string that goes through the proxy. */
  get url(): string {
    const url = new URL(this.#target);
    url.hostname = "127.0.0.1";
    url.port = String((this.#server.address() as AddressInfo).port);
    return url.href;
  }

  set mode(mode: Mode) {
    if (mode === this.#mode) return;
    this.#mode = mode;
    for (const pair of this.#pairs) this.#treat(pair);
  }

  async close(): Promise<void> {
    this.mode = "refuse";
    this.#server.close();
    await once(this.#server, "close");
  }

  #accept(client: Socket): void {
    this.attempts += 1;
    client.on("error", () => client.destroy());
    if (this.#mode === "refuse") {
      client.destroy();
      return;
    }
    const { hostname, port } = this.#target;
    const server = connect(Number(port || 5432), hostname);
    server.on("error", () => server.destroy());
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    for (const [one, other] of [pair, [server, client] as const]) {
      one.on("close", () => {
        this.#pairs.delete(pair);
        if (this.#mode !== "swallow") other.destroy();
      });
    }
    this.#treat(pair);
  }

  #treat(pair: readonly [Socket, Socket]): void {
    const [client, server] = pair;
    if (this.#mode === "refuse") {
      for (const socket of pair) socket.destroy();
    } else if (this.#mode === "swallow") {
      client.unpipe(server).pause();
      server.unpipe(client).pause();
    } else {
      client.pipe(server);
      server.pipe(client);
    }
  }
}
