import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/**
 * What a proxy does with its connections. `pass`: forwards. `refuse`: resets them, and new ones at once. `swallow`:
 * keeps them open and forwards nothing, as a network that has gone does. `delay`: forwards late.
 */
export type ProxyMode = "pass" | "refuse" | "swallow" | "delay";

const delayMs = 150;

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  /** Forwards nothing any more, ever. */
  isDead: boolean;
}

/** Stands between processes and their database, and spoils what goes through. */
export class FaultyProxy {
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #target: URL;
  #mode: ProxyMode = "pass";

  private constructor(server: Server, target: URL) {
    this.#server = server;
    this.#target = target;
  }

  /** A proxy before the server that a connection string names. */
  static async before(url: string): Promise<FaultyProxy> {
    const server = createServer();
    const proxy = new FaultyProxy(server, new URL(url));
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

  set mode(mode: ProxyMode) {
    this.#mode = mode;
    for (const pair of this.#pairs) {
      if (mode === "refuse") this.#reset(pair);
      for (const socket of [pair.client, pair.server]) {
        if (mode === "swallow" || pair.isDead) socket.pause();
        else socket.resume();
      }
    }
  }

  /** Cuts the connections that chance picks. */
  cut(chance: () => boolean): void {
    for (const pair of this.#pairs) if (chance()) this.#reset(pair);
  }

  /** The server's side of every connection is gone, and the client hears nothing of it, then or later. */
  halfOpen(): void {
    for (const pair of this.#pairs) {
      pair.isDead = true;
      pair.client.pause();
      pair.server.destroy();
    }
  }

  /** Leads to another server from now on, as an address does that moves. */
  moveTo(url: string): void {
    this.#target = new URL(url);
    for (const pair of this.#pairs) this.#reset(pair);
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const pair of this.#pairs) this.#reset(pair);
    await once(this.#server, "close");
  }

  #reset(pair: Pair): void {
    this.#pairs.delete(pair);
    for (const socket of [pair.client, pair.server]) socket.destroy();
  }

  #accept(client: Socket): void {
    client.on("error", () => client.destroy());
    if (this.#mode === "refuse") {
      client.destroy();
      return;
    }
    const { hostname, port } = this.#target;
    const server = connect(Number(port || 5432), hostname);
    server.on("error", () => server.destroy());
    const pair: Pair = { client, server, isDead: false };
    this.#pairs.add(pair);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.on("data", (chunk) => this.#forward(pair, to, chunk));
      from.on("close", () => {
        // A network that has gone carries no farewell; neither does one that has forgotten a connection.
        if (pair.isDead && from === server) return;
        if (this.#mode === "swallow") pair.isDead = true;
        else this.#reset(pair);
      });
      if (this.#mode === "swallow") from.pause();
    }
  }

  #forward(pair: Pair, to: Socket, chunk: Buffer): void {
    const send = () => {
      if (!pair.isDead && !to.destroyed) to.write(chunk);
    };
    if (this.#mode === "delay") setTimeout(send, delayMs);
    else send();
  }
}
