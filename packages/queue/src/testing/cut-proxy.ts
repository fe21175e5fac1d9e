import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A way to a database that can be cut. */
export interface CutProxy {
  readonly url: string;
  /** From now on the server's replies are lost, and with the next one the connection. */
  cutReplies(): void;
  /** New connections get through again. */
  mend(): void;
  close(): Promise<void>;
}

/** Passes connections on to a database, for tests of lost ones. */
export async function cutProxy(databaseUrl: string): Promise<CutProxy> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((client) => {
    const upstream = connect(Number(target.port || 5432), target.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        upstream.end();
      });
    }
    client.pipe(upstream);
    upstream.on("data", (data) => {
      if (isCut) client.destroy();
      else client.write(data);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(databaseUrl);
  url.hostname = "127.0.0.1";
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    cutReplies: () => {
      isCut = true;
    },
    mend: () => {
      isCut = false;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
