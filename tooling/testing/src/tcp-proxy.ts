import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/**
 * What a proxy does with its connections.
 *
 * - `pass`: forwards.
 * - `delay`: forwards late.
 * - `swallow`: keeps them open and forwards nothing until the mode changes, as a network does that has gone.
 * - `refuse`: resets them, and new ones at once.
 * - `lose-replies`: forwards requests, and resets a connection when the reply to one arrives.
 */
export type ProxyMode = "pass" | "delay" | "swallow" | "refuse" | "lose-replies";

const delayMs = 150;

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  /** What has arrived and is to be forwarded later, in order. */
  readonly held: (() => void)[];
  /** Forwards nothing any more, ever. */
  isDead: boolean;
}

/** Stands between processes and their database, and spoils what goes through. */
export class TcpProxy {
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #target: URL;
  #mode: ProxyMode = "pass";
  #accepted = 0;

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

  /** How many connections have been made to it, refused ones included. */
  get accepted(): number {
    return this.#accepted;
  }

  /** How many of them their client has not closed. */
  get open(): number {
    return [...this.#pairs].filter(({ client }) => !client.destroyed).length;
  }

  /** How many pieces of what was sent through it have arrived and are not forwarded yet. */
  get held(): number {
    return [...this.#pairs].reduce((count, { held }) => count + held.length, 0);
  }

  set mode(mode: ProxyMode) {
    this.#mode = mode;
    for (const pair of this.#pairs) {
      if (mode === "refuse") this.#reset(pair);
      else if (mode !== "swallow") for (const send of pair.held.splice(0)) send();
    }
  }

  /** Cuts all connections, or those that chance picks. */
  cut(chance: () => boolean = () => true): void {
    for (const pair of this.#pairs) if (chance()) this.#reset(pair);
  }

  /** The server's side of every connection is gone, and the client hears nothing of it, then or later. */
  halfOpen(): void {
    for (const pair of this.#pairs) {
      pair.isDead = true;
      pair.server.destroy();
    }
  }

  /** Leads to another server from now on, as an address does that moves. */
  moveTo(url: string): void {
    this.#target = new URL(url);
    this.cut();
  }

  async close(): Promise<void> {
    this.#server.close();
    this.cut();
    await once(this.#server, "close");
  }

  #reset(pair: Pair): void {
    this.#pairs.delete(pair);
    pair.isDead = true;
    for (const socket of [pair.client, pair.server]) socket.destroy();
  }

  #accept(client: Socket): void {
    this.#accepted += 1;
    client.on("error", () => client.destroy());
    if (this.#mode === "refuse") {
      client.destroy();
      return;
    }
    const { hostname, port } = this.#target;
    const server = connect(Number(port || 5432), hostname);
    server.on("error", () => server.destroy());
    const pair: Pair = { client, server, held: [], isDead: false };
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
    }
  }

  #forward(pair: Pair, to: Socket, chunk: Buffer): void {
    if (pair.isDead) return;
    if (this.#mode === "lose-replies" && to === pair.client) {
      this.#reset(pair);
      return;
    }
    const send = () => {
      if (!pair.isDead && !to.destroyed) to.write(chunk);
    };
    if (this.#mode === "pass" || this.#mode === "lose-replies") {
      send();
      return;
    }
    pair.held.push(send);
    if (this.#mode === "swallow") return;
    // Where the mode has changed meanwhile, that has sent it, or still holds it.
    setTimeout(() => this.#mode === "delay" && pair.held.shift()?.(), delayMs);
  }
}
